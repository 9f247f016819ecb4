"""What a person did to a record, told in the owner's log: it is a part of the record's story."""

from uuid import UUID

import structlog

from storage import owner
from storage.record import StopCode

log = structlog.get_logger()


def tell_deed(verb: object, record: UUID, account: UUID, by: str) -> None:
    """Say that `by`, asking for `account`, did one of the verbs of `storage.owner`."""
    facts = {"record": str(record), "owner": str(account), "by": by}
    if verb is owner.stop:
        log.info("record.stopped", code=StopCode.STOPPED_BY_OWNER, reason=f"stopped by {by}", **facts)
    elif verb is owner.lift:
        log.info("record.lifted", **facts)
    elif verb is owner.delete:
        log.info("record.deleted", **facts)
    elif verb is owner.undelete:
        log.info("record.undeleted", **facts)

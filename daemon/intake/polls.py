"""What is asked again and again, by many at once: who somebody is, and what a record is at."""

from collections.abc import Collection, Mapping
from functools import partial
from uuid import UUID

from attrs import frozen

from daemon.intake.changes import Changes
from daemon.intake.problems import no_such_record
from daemon.intake.together import Together
from storage.account import Account
from storage.accounts import accounts_of_secrets
from storage.database import Database
from storage.readiness import Readiness, read_many
from storage.record import Milestone


@frozen
class Look:
    """A record that is asked for, with its text or without."""

    record_id: UUID
    with_text: bool


class Polls:
    """What is asked again and again, by many at once."""

    def __init__(self, database: Database) -> None:
        """Begin with nobody waiting."""
        self.changes = Changes()
        self.accounts: Together[bytes, Account] = Together(partial(accounts_of_secrets, database))
        self._records: Together[Look, Readiness] = Together(partial(_read_together, database))

    async def look(self, record_id: UUID, account: Account, *, with_text: bool = True) -> Readiness:
        """Return what a record is at; raises Problem for one that is not there, or not the account's."""
        found = await self._records.ask(Look(record_id, with_text))
        if found is None or found.owner_id != account.id:
            raise no_such_record()
        if with_text and found.text is None and found.milestone is Milestone.DONE:
            # It became done between two questions that were asked together, one without its text.
            return await self.look(record_id, account)
        return found


async def _read_together(database: Database, looks: Collection[Look]) -> Mapping[Look, Readiness]:
    ids = {look.record_id for look in looks}
    found = await read_many(database, ids, {look.record_id for look in looks if look.with_text})
    return {look: found[look.record_id] for look in looks if look.record_id in found}

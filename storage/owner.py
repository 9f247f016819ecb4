"""What a person may do to a record at any time, also under a running stage: edit, stop, lift, (un)delete.

`owner_id` None speaks for the service owner, who reaches every record.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, LiteralString
from uuid import UUID

from attrs import frozen

from storage.claim import NotFound
from storage.database import Connection, Database
from storage.record import Milestone
from storage.sql import query


class Verdict(Enum):
    """What became of a person's verb; all but DONE changed nothing."""

    DONE = auto()
    PAST_STOPPING = auto()  # the record has reached its last milestone
    ALREADY_STOPPED = auto()
    NOT_STOPPED = auto()
    NOT_DELETED = auto()


async def stop(database: Database, record_id: UUID, owner_id: UUID | None, by: str) -> Verdict | NotFound:
    """Set the stop flag; a running attempt is fenced at once."""
    asked = {"id": record_id, "owner_id": owner_id, "by": by, "reason": f"stopped by {by}"}
    return await database.transact(_in_verb, query("owner_stop"), asked, _why_not_stopped)


async def lift(database: Database, record_id: UUID, owner_id: UUID | None, by: str) -> Verdict | NotFound:
    """Lift the stop flag: failures and the milestone guard start anew, the record is ready."""
    asked = {"id": record_id, "owner_id": owner_id, "by": by}
    return await database.transact(_in_verb, query("owner_lift"), asked, _why_not_lifted)


async def delete(database: Database, record_id: UUID, owner_id: UUID | None, by: str) -> Verdict | NotFound:
    """Make a record invisible and fence it; its bytes and rows stay until the purge."""
    asked = {"id": record_id, "owner_id": owner_id, "by": by}
    return await database.transact(_in_verb, query("owner_delete"), asked, _why_not_deleted)


async def undelete(database: Database, record_id: UUID, owner_id: UUID | None, by: str) -> Verdict | NotFound:
    """Take a deletion back: the record goes on where it was."""
    asked = {"id": record_id, "owner_id": owner_id, "by": by}
    return await database.transact(_in_verb, query("owner_undelete"), asked, _why_not_undeleted)


EDITED = ("title", "description", "topics", "left_name", "right_name")


@frozen(kw_only=True)
class Edit:
    """What an owner writes: None leaves a field as it is; `edition` is the one it is meant for, None any."""

    title: str | None = None
    description: str | None = None
    topics: tuple[str, ...] | None = None
    left_name: str | None = None
    right_name: str | None = None
    edition: int | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields that are written."""
        return tuple(name for name in EDITED if getattr(self, name) is not None)


async def edit(database: Database, record_id: UUID, owner_id: UUID, by: str, edit: Edit) -> bool:
    """Write an edit, and with it a new edition; False when there is no such record, or not at that one."""
    return await database.transact(_in_edit, record_id, owner_id, by, edit)


async def _in_edit(connection: Connection, record_id: UUID, owner_id: UUID, by: str, edit: Edit) -> bool:
    written = {
        "id": record_id,
        "owner_id": owner_id,
        "by": by,
        "title": edit.title,
        "description": edit.description,
        "topics": None if edit.topics is None else list(edit.topics),
        "left_name": edit.left_name,
        "right_name": edit.right_name,
        "edition": edit.edition,
        "fields": list(edit.fields),
    }
    return await (await connection.execute(query("owner_edit"), written)).fetchone() is not None


@frozen
class _Seen:
    """What there is of a record on which a verb had no effect."""

    milestone: str
    stopped: bool
    deleted: bool


def _why_not_stopped(seen: _Seen) -> Verdict | None:
    if seen.deleted:
        return None
    return Verdict.PAST_STOPPING if seen.milestone == Milestone.DONE else Verdict.ALREADY_STOPPED


def _why_not_lifted(seen: _Seen) -> Verdict | None:
    return None if seen.deleted else Verdict.NOT_STOPPED


def _why_not_deleted(_: _Seen) -> Verdict | None:
    return None


def _why_not_undeleted(_: _Seen) -> Verdict | None:
    return Verdict.NOT_DELETED


async def _in_verb(
    connection: Connection,
    statement: LiteralString,
    asked: Mapping[str, Any],
    why_not: Callable[[_Seen], Verdict | None],
) -> Verdict | NotFound:
    if await (await connection.execute(statement, asked)).fetchone():
        return Verdict.DONE
    row = await (await connection.execute(query("owner_sees"), asked)).fetchone()
    return NotFound(asked["id"]) if row is None else why_not(_Seen(*row)) or NotFound(asked["id"])

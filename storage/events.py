"""The history kept with each record."""

from datetime import datetime
from typing import Any
from uuid import UUID

from attrs import frozen
from psycopg.rows import dict_row

from storage.claim import NotFound
from storage.database import Connection, Database
from storage.record import Milestone
from storage.sql import query


@frozen(kw_only=True)
class Event:
    """Something that happened to a record; `detail` is for the service owner, its keys depend on `kind`."""

    id: int
    at: datetime
    kind: str
    milestone: Milestone
    by: str
    detail: dict[str, Any]


async def read_events(
    database: Database, record_id: UUID, owner_id: UUID | None, *, after: int = 0
) -> tuple[Event, ...] | NotFound:
    """Return the history of a record, the oldest event first; NotFound as the readiness poll has it.

    `owner_id` None asks as the service owner, who may see every record; `after` is the id of an event, and
    only later ones are returned.
    """
    return await database.transact(_in_read_events, record_id, owner_id, after)


async def _in_read_events(
    connection: Connection, record_id: UUID, owner_id: UUID | None, after: int
) -> tuple[Event, ...] | NotFound:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("events_read"), {"id": record_id, "owner_id": owner_id, "after": after})
        rows = await cursor.fetchall()
    if not rows:
        return NotFound(record_id)
    return tuple(
        Event(**{**row, "milestone": Milestone(row["milestone"])}) for row in rows if row["id"] is not None
    )

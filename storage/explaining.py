"""Why a record is not claimed: the facts, read as the claim reads them, each of its conditions by itself."""

from datetime import datetime
from typing import Any
from uuid import UUID

from attrs import evolve, frozen
from cattrs import Converter
from psycopg.rows import dict_row

from storage.claim import NotFound
from storage.claims import in_read
from storage.daemons import LaneSign
from storage.database import Connection, Database
from storage.readiness import MOST_AHEAD
from storage.reading import stop_from_row
from storage.record import Milestone, Record, Stop
from storage.sql import query


@frozen(kw_only=True)
class Daemon:
    """A daemon as its last sign of life has it, and whether it would claim this record."""

    run: str
    host: str
    pid: int
    started_at: datetime
    beat_at: datetime
    silent_seconds: float
    workers: int
    failures_limit: int
    lanes: tuple[LaneSign, ...]
    is_alive: bool
    has_store: bool
    has_stage: bool
    has_free_lane: bool
    needs_no_lane: bool


@frozen(kw_only=True)
class Attempt:
    """A claim of this record: `kind` and `cause` say how it ended, None when it has no end."""

    at: datetime
    by: str
    ended_at: datetime | None
    kind: str | None
    cause: str | None
    is_running: bool


@frozen(kw_only=True)
class Facts:
    """A record as the claim looks at it; `is_...` are the claim's conditions as the database evaluates them.

    `attempts` are the newest 20 since the record last came further, deferred or was lifted, newest first.
    `ahead` counts those before it in its lane, to a bound; `ready_since` and it are None unless it is ready.
    `is_not_locked` is None where it was not asked; `record` is None for a deleted one.
    """

    now: datetime
    id: UUID
    owner: str
    filename: str
    created_at: datetime
    milestone: Milestone
    milestone_since: datetime
    milestone_seconds: float
    lane: str | None
    store_id: UUID
    failures: int
    wake_at: datetime | None
    claimed_by: str | None
    claimed_at: datetime | None
    lease_seconds: float | None
    lease_until: datetime | None
    stop: Stop | None
    deleted_at: datetime | None
    ready_since: datetime | None
    ahead: int | None
    is_not_stopped: bool
    is_not_deleted: bool
    is_not_done: bool
    is_due: bool
    is_not_held: bool
    is_not_locked: bool | None
    takes_writes: bool
    daemons: tuple[Daemon, ...]
    attempts: tuple[Attempt, ...]
    record: Record | None

    @property
    def is_ready(self) -> bool:
        """True when the record's own conditions all hold."""
        own = (self.is_not_stopped, self.is_not_deleted, self.is_not_done, self.is_due, self.is_not_held)
        return all(own)


async def read_facts(database: Database, record_id: UUID) -> Facts | NotFound:
    """Read what explains a record's state, for the service owner; deleted records are there too."""
    return await database.transact(_in_read_facts, record_id)


async def _in_read_facts(connection: Connection, record_id: UUID) -> Facts | NotFound:
    asked = {"id": record_id, "most_ahead": MOST_AHEAD}
    async with connection.cursor(row_factory=dict_row) as cursor:
        row = await (await cursor.execute(query("explain_record"), asked)).fetchone()
        if row is None:
            return NotFound(record_id)
        daemons = await (await cursor.execute(query("explain_daemons"), asked)).fetchall()
        attempts = await (await cursor.execute(query("explain_attempts"), asked)).fetchall()
    record = await in_read(connection, record_id)
    facts = _facts(row, daemons, attempts, record if isinstance(record, Record) else None)
    if not (facts.is_ready and facts.takes_writes):
        return facts
    # Only of a record that is ready: a claim at this very moment would pass over what we lock.
    locked = await (await connection.execute(query("explain_lock"), asked)).fetchone() is None
    return evolve(facts, is_not_locked=not locked)


def _facts(
    row: dict[str, Any], daemons: list[dict[str, Any]], attempts: list[dict[str, Any]], record: Record | None
) -> Facts:
    stop = stop_from_row(row)
    for column in ("stop_code", "stop_reason", "stopped_at", "stopped_by"):
        del row[column]
    row["milestone"] = Milestone(row["milestone"])
    return Facts(
        stop=stop,
        is_not_locked=None,
        daemons=tuple(_daemon(each) for each in daemons),
        attempts=tuple(Attempt(**each) for each in attempts),
        record=record,
        **row,
    )


def _daemon(row: dict[str, Any]) -> Daemon:
    return Daemon(**{**row, "lanes": _LANES.structure(row["lanes"], tuple[LaneSign, ...])})


_LANES = Converter()

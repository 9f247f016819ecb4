"""The service at a glance, for the service owner: who works, on what, what is stopped, how much gets done.

Of the records themselves there is nothing but whose they are and what they are at.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from attrs import frozen
from cattrs import Converter
from psycopg.rows import class_row, dict_row

from storage.daemons import LaneSign
from storage.database import Connection, Database
from storage.queue_numbers import Heap, in_read_queue
from storage.record import Milestone, StopCode
from storage.sql import query

MOST_EVENTS = 50_000
MOST_STOPPED = 50


@frozen(kw_only=True)
class Seen:
    """A daemon as its last sign of life has it."""

    run: str
    host: str
    pid: int
    started_at: datetime
    beat_at: datetime
    workers: int
    lanes: tuple[LaneSign, ...]
    silent_seconds: float
    is_alive: bool


@frozen(kw_only=True)
class Held:
    """A record that is in hand: `run` is the daemon that has it."""

    id: UUID
    owner: str
    milestone: Milestone
    lane: str | None
    run: str
    failures: int
    held_seconds: float
    recognised_seconds: float
    audio_seconds: float | None


@frozen(kw_only=True)
class Stops:
    """How many records are stopped for one reason, and when the last of them was."""

    code: StopCode
    records: int
    latest: datetime


@frozen(kw_only=True)
class Stopped:
    """A stopped record, with the full reason, which is for the service owner."""

    id: UUID
    owner: str
    milestone: Milestone
    code: StopCode
    reason: str
    stopped_at: datetime
    failures: int


@frozen(kw_only=True)
class Hour:
    """What became done in an hour; `records` is None where more happened since than is read."""

    hour: datetime
    records: int | None
    audio_seconds: float


@frozen(kw_only=True)
class Overview:
    """All of it, as it was at one moment."""

    daemons: Sequence[Seen]
    held: Sequence[Held]
    heaps: Sequence[Heap]
    stops: Sequence[Stops]
    stopped: Sequence[Stopped]
    hours: Sequence[Hour]


async def read_overview(database: Database, code: StopCode | None = None) -> Overview:
    """Return the service at a glance, with the stopped records of one reason or of all."""
    return await database.transact(_in_read_overview, code)


async def _in_read_overview(connection: Connection, code: StopCode | None) -> Overview:
    async with connection.cursor(row_factory=dict_row) as cursor:
        daemons = await (await cursor.execute(query("overview_daemons"))).fetchall()
        held = await (await cursor.execute(query("overview_held"))).fetchall()
        stops = await (await cursor.execute(query("overview_stops"))).fetchall()
        asked = {"code": code, "limit": MOST_STOPPED}
        stopped = await (await cursor.execute(query("overview_stopped"), asked)).fetchall()
    async with connection.cursor(row_factory=class_row(Hour)) as cursor_of_hours:
        hours = await (
            await cursor_of_hours.execute(query("overview_hours"), {"limit": MOST_EVENTS})
        ).fetchall()
    return Overview(
        daemons=[_seen(row) for row in daemons],
        held=[Held(**{**row, "milestone": Milestone(row["milestone"])}) for row in held],
        heaps=await in_read_queue(connection),
        stops=[Stops(**{**row, "code": StopCode(row["code"])}) for row in stops],
        stopped=[_stopped(row) for row in stopped],
        hours=hours,
    )


def _seen(row: dict[str, Any]) -> Seen:
    return Seen(**{**row, "lanes": _LANES.structure(row["lanes"], tuple[LaneSign, ...])})


def _stopped(row: dict[str, Any]) -> Stopped:
    return Stopped(**{**row, "milestone": Milestone(row["milestone"]), "code": StopCode(row["code"])})


_LANES = Converter()

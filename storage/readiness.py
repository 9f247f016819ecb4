"""What a record is at: the readiness poll, the text so far, and lists of records."""

from datetime import datetime
from typing import Any
from uuid import UUID

from attrs import frozen
from cattrs import Converter
from psycopg.rows import dict_row

from storage.claim import NotFound
from storage.database import Connection, Database
from storage.record import Milestone, Segment, Stop, StopCode, Word
from storage.sql import query

MOST_AHEAD = 1000  # a queue position past this one reads "1001": that one or a later one
_SOONEST, _LATEST = 1, 30  # seconds between two polls
_STEPS = 60  # a record is worth about this many polls


@frozen(kw_only=True)
class Readiness:
    """A record as its owner may see it; seconds are of audio.

    `queue_position` is None unless the record waits for its turn; `wakes_in` is in seconds from now.
    """

    id: UUID
    owner_id: UUID
    milestone: Milestone
    milestone_since: datetime
    created_at: datetime
    failures: int
    edition: int
    stop: Stop | None
    title: str
    description: str
    topics: tuple[str, ...]
    filename: str
    asked_language: str | None
    found_language: str | None
    declared_seconds: float | None
    decoded_seconds: float | None
    audio_warnings: tuple[str, ...]
    recogniser: str | None
    recognised_seconds: float
    text: str | None
    held: bool
    wakes_in: float | None
    queue_position: int | None

    @property
    def audio_seconds(self) -> float | None:
        """Return the length as decoded, as declared while that is not known yet, None when nobody knows."""
        return self.decoded_seconds if self.decoded_seconds is not None else self.declared_seconds

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what its owner should know of the audio; `silent`: heard to its end, and nobody spoke."""
        silent = self.milestone == Milestone.DONE and self.text == ""
        return (*self.audio_warnings, "silent") if silent else self.audio_warnings

    @property
    def fraction(self) -> float | None:
        """Return how much of the audio is recognised, 0 to 1; None while its length is unknown."""
        if self.milestone == Milestone.DONE:
            return 1.0
        if not self.audio_seconds or self.audio_seconds < 0:
            return None
        return round(min(self.recognised_seconds / self.audio_seconds, 1.0), 3)

    @property
    def ask_again_seconds(self) -> int | None:
        """Return when another poll is worth its while; None when nothing will change by itself."""
        if self.milestone == Milestone.DONE or self.stop is not None:
            return None
        left = max((self.audio_seconds or 0.0) - self.recognised_seconds, 0.0)
        if not self.held and self.wakes_in:
            left = max(left, self.wakes_in * _STEPS)  # until then nothing can change
        return round(min(max(left / _STEPS, _SOONEST), _LATEST))


@frozen(kw_only=True)
class Listed:
    """One line of a list of records."""

    id: UUID
    owner_id: UUID
    owner: str
    created_at: datetime
    milestone: Milestone
    stop_code: StopCode | None
    failures: int
    title: str
    filename: str
    audio_seconds: float | None
    recognised_seconds: float


@frozen(kw_only=True)
class Wanted:
    """Which records to list: None asks for all; `before` is the last line of the page before."""

    milestone: Milestone | None = None
    stopped: bool | None = None
    before: Listed | None = None
    limit: int = 100


async def read_readiness(database: Database, record_id: UUID, owner_id: UUID | None) -> Readiness | NotFound:
    """Return all the poll shows; NotFound for a record that is unknown, deleted or somebody else's.

    `owner_id` None asks as the service owner, who may see every record.
    """
    return await database.transact(_in_read_readiness, record_id, owner_id)


async def read_segments(database: Database, record_id: UUID, owner_id: UUID | None) -> tuple[Segment, ...]:
    """Return the segments recognised so far, in the order of the audio; none for a record one may not see."""
    return await database.transact(_in_read_segments, record_id, owner_id)


async def list_records(
    database: Database, owner_id: UUID | None, wanted: Wanted | None = None
) -> tuple[Listed, ...]:
    """Return records, the newest first; `owner_id` None lists everybody's."""
    return await database.transact(_in_list_records, owner_id, wanted or Wanted())


async def _in_read_readiness(
    connection: Connection, record_id: UUID, owner_id: UUID | None
) -> Readiness | NotFound:
    async with connection.cursor(row_factory=dict_row) as cursor:
        asked = {"id": record_id, "owner_id": owner_id, "most_ahead": MOST_AHEAD}
        await cursor.execute(query("readiness"), asked)
        row = await cursor.fetchone()
    return NotFound(record_id) if row is None else _readiness(row)


async def _in_read_segments(
    connection: Connection, record_id: UUID, owner_id: UUID | None
) -> tuple[Segment, ...]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("segments_read"), {"id": record_id, "owner_id": owner_id})
        return tuple([_segment(row) async for row in cursor])


async def _in_list_records(
    connection: Connection, owner_id: UUID | None, wanted: Wanted
) -> tuple[Listed, ...]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            query("records_listed"),
            {
                "owner_id": owner_id,
                "milestone": wanted.milestone and wanted.milestone.value,
                "stopped": wanted.stopped,
                "before_at": wanted.before and wanted.before.created_at,
                "before_id": wanted.before and wanted.before.id,
                "limit": wanted.limit,
            },
        )
        return tuple([_listed(row) async for row in cursor])


def _readiness(row: dict[str, Any]) -> Readiness:
    code, reason, at, by = (
        row.pop(name) for name in ("stop_code", "stop_reason", "stopped_at", "stopped_by")
    )
    row["stop"] = None if code is None else Stop(code=StopCode(code), reason=reason, at=at, by=by)
    row["milestone"] = Milestone(row["milestone"])
    for name in ("topics", "audio_warnings"):
        row[name] = tuple(row[name])
    return Readiness(**row)


def _listed(row: dict[str, Any]) -> Listed:
    code = row.pop("stop_code")
    milestone = Milestone(row.pop("milestone"))
    return Listed(milestone=milestone, stop_code=None if code is None else StopCode(code), **row)


def _segment(row: dict[str, Any]) -> Segment:
    return Segment(
        slice=row["slice"],
        number=row["number"],
        start=row["start_seconds"],
        end=row["end_seconds"],
        text=row["text"],
        words=_WORDS.structure(row["words"], tuple[Word, ...]),
    )


_WORDS = Converter()

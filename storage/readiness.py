"""What records are at: the readiness poll, and lists."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from attrs import frozen
from psycopg.rows import dict_row

from storage.claim import NotFound
from storage.database import Connection, Database
from storage.record import Milestone, Stop, StopCode
from storage.sql import query

MOST_AHEAD = 1000  # a queue position past this one reads "1001": that one or a later one


@frozen(kw_only=True)
class Readiness:
    """A record as its owner may see it; seconds are of audio.

    `gaps` counts the marks of speech without text so far. `text` is None until the record is done, and
    where it was not asked for; `is_silent`: done, and nobody spoke. `queue_position` is None unless the
    record waits for its turn. `held_seconds` is how long the running attempt has lasted, None when there
    is none; `milestone_seconds` is what was spent at this milestone before it, and `wakes_in` the seconds
    from now until a delay is over.
    """

    id: UUID
    owner_id: UUID
    milestone: Milestone
    milestone_since: datetime
    created_at: datetime
    failures: int
    edition: int
    corrections: int
    stop: Stop | None
    title: str
    description: str
    topics: tuple[str, ...]
    left_name: str
    right_name: str
    filename: str
    asked_language: str | None
    found_language: str | None
    translate: bool
    declared_seconds: float | None
    decoded_seconds: float | None
    audio_warnings: tuple[str, ...]
    recogniser: str | None
    recognised_seconds: float
    store_id: UUID
    audio_path: str | None
    gaps: int
    gap_seconds: float
    text: str | None
    is_silent: bool
    milestone_seconds: float
    held_seconds: float | None
    wakes_in: float
    queue_position: int | None

    @property
    def held(self) -> bool:
        """Tell whether a worker is at it."""
        return self.held_seconds is not None

    @property
    def audio_seconds(self) -> float | None:
        """Return the length as decoded, as declared while that is not known yet, None when nobody knows."""
        return self.decoded_seconds if self.decoded_seconds is not None else self.declared_seconds

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what its owner should know: of the audio, and of the text.

        `silent`: heard to its end, and nobody spoke; `gaps`: somebody speaks where there is no text.
        """
        found = ("gaps",) if self.gaps else ("silent",) if self.is_silent else ()
        return (*self.audio_warnings, *found)

    @property
    def fraction(self) -> float | None:
        """Return how much of the audio is recognised, 0 to 1; None while its length is unknown."""
        if self.milestone == Milestone.DONE:
            return 1.0
        if not self.audio_seconds or self.audio_seconds < 0:
            return None
        return round(min(self.recognised_seconds / self.audio_seconds, 1.0), 3)


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


@frozen(kw_only=True)
class PageWanted:
    """Which of an owner's records to list: None asks for all; `before` is where the page before ended."""

    milestone: Milestone | None = None
    stopped: bool | None = None
    search: str | None = None
    before: "Place | None" = None
    limit: int = 50


@frozen
class Place:
    """A place in the order of records, the newest first."""

    created_at: datetime
    id: UUID


async def read_readiness(database: Database, record_id: UUID, owner_id: UUID | None) -> Readiness | NotFound:
    """Return all the poll shows; NotFound for a record that is unknown, deleted or somebody else's.

    `owner_id` None asks as the service owner, who may see every record.
    """
    found = await database.transact(in_read_many, [record_id], [record_id], owner_id)
    return found.get(record_id, NotFound(record_id))


async def read_many(
    database: Database, ids: Collection[UUID], with_text: Collection[UUID]
) -> Mapping[UUID, Readiness]:
    """Return what the poll shows of those that are there, whoever's they are, some with their text."""
    return await database.transact(in_read_many, ids, with_text, None)


async def read_page(database: Database, owner_id: UUID, wanted: PageWanted) -> tuple[Readiness, ...]:
    """Return records of one owner, the newest first, without texts and places in the queue.

    `search` finds what its words (Russian and English, in any of their forms) stand in: titles, descriptions,
    topics, file names, texts; "..." asks for a phrase, - for what must not be there, `or` for either.
    """
    return await database.transact(_in_read_page, owner_id, wanted)


async def list_records(
    database: Database, owner_id: UUID | None, wanted: Wanted | None = None
) -> tuple[Listed, ...]:
    """Return records, the newest first; `owner_id` None lists everybody's."""
    return await database.transact(_in_list_records, owner_id, wanted or Wanted())


async def in_read_many(
    connection: Connection, ids: Collection[UUID], with_text: Collection[UUID], owner_id: UUID | None
) -> dict[UUID, Readiness]:
    """Do as `read_many` and `read_readiness` do, asyncio-flavoured, on a connection that one has."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        asked = {
            "ids": list(ids),
            "with_text": list(with_text),
            "owner_id": owner_id,
            "most_ahead": MOST_AHEAD,
        }
        await cursor.execute(query("readiness"), asked)
        return {row["id"]: _readiness(row) async for row in cursor}


async def _in_read_page(connection: Connection, owner_id: UUID, wanted: PageWanted) -> tuple[Readiness, ...]:
    asked = {
        "owner_id": owner_id,
        "milestone": wanted.milestone,
        "stopped": wanted.stopped,
        "before_at": wanted.before and wanted.before.created_at,
        "before_id": wanted.before and wanted.before.id,
        "limit": wanted.limit,
    }
    async with connection.cursor(row_factory=dict_row) as cursor:
        if wanted.search is None:
            await cursor.execute(query("records_page"), asked)
        else:
            await cursor.execute(query("records_found"), {**asked, "search": wanted.search})
        return tuple([_readiness(row) async for row in cursor])


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

"""What owners correct in a text, segment by segment: each edition is kept, and the way back is one more."""

from collections.abc import Callable, Sized
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import trio
from attrs import evolve, frozen
from psycopg.rows import class_row, dict_row

from storage.aligning import aligned
from storage.database import Connection, Database
from storage.record import Segment
from storage.segments import segment_from_row
from storage.sql import query

MOST_LETTERS = 20_000
MOST_EDITIONS = 200  # of one segment, that are shown
ALL = 2**31 - 1
_AT_ONCE = 500  # segments, which take a few milliseconds
_THREADS = trio.CapacityLimiter(2)

T = TypeVar("T")


@frozen(kw_only=True)
class OwnSegment:
    """A segment as recognised, and what its owner made of it; `edition` counts the corrections."""

    recognised: Segment
    edition: int
    corrected: str | None

    @property
    def key(self) -> str:
        """Its name within the record."""
        return f"{self.recognised.slice}.{self.recognised.number}"

    @property
    def text(self) -> str:
        """What it says, as its owner has it."""
        return self.recognised.text if self.corrected is None else self.corrected

    @property
    def segment(self) -> Segment:
        """The segment as its owner has it, the words with times."""
        if self.corrected is None:
            return self.recognised
        heard = self.recognised
        words = aligned(heard.words, self.corrected, heard.start, heard.end)
        return evolve(heard, text=self.corrected, words=words, gap=None)


@frozen(kw_only=True)
class Correction:
    """What a segment was corrected to once; `text` None: back to what was recognised."""

    edition: int
    text: str | None
    at: datetime
    by: str


@frozen(kw_only=True)
class Unplaced:
    """A correction of a piece that is no segment any more; nothing of what an owner wrote is lost."""

    start: float
    text: str
    at: datetime
    by: str


@frozen(kw_only=True)
class Place:
    """Where a segment stands in a record's recognition."""

    slice: int
    number: int


async def read_own_segments(
    database: Database, record_id: UUID, owner_id: UUID | None, *, first: int = 0, limit: int = ALL
) -> tuple[OwnSegment, ...]:
    """Return segments in the order of the audio, from the `first` on; none of a record one may not see."""
    rows = await database.transact(_in_read_many, record_id, owner_id, first, limit)
    return await _beside(rows, lambda: tuple(map(_own, rows)))


async def read_segments(
    database: Database, record_id: UUID, owner_id: UUID | None, *, recognised: bool = False
) -> tuple[Segment, ...]:
    """Return the segments so far as their owner has them, or as they were recognised."""
    found = await read_own_segments(database, record_id, owner_id)
    return await _beside(
        found, lambda: tuple([each.recognised if recognised else each.segment for each in found])
    )


async def count_segments(database: Database, record_id: UUID, second: float) -> tuple[int, int]:
    """Return how many segments there are, and how many of them begin by that second."""
    return await database.transact(_in_count, record_id, second)


async def read_own_segment(
    database: Database, record_id: UUID, owner_id: UUID, place: Place
) -> OwnSegment | None:
    """Return one segment; None where there is none that one may see."""
    return await database.transact(_in_read_one, record_id, owner_id, place)


async def read_corrections(database: Database, record_id: UUID, place: Place) -> tuple[Correction, ...]:
    """Return what a segment was corrected to, the last first; whose it is was asked before."""
    return await database.transact(_in_read_corrections, record_id, place)


async def read_unplaced(database: Database, record_id: UUID) -> tuple[Unplaced, ...]:
    """Return corrections that have no segment now; whose they are was asked before."""
    return await database.transact(_in_read_unplaced, record_id)


async def correct(
    database: Database, record_id: UUID, owner_id: UUID, by: str, place: Place, edition: int, text: str | None
) -> int | None:
    """Correct a segment on the edition one saw, or go back to what was recognised (None).

    Returns its edition now; None where there is no such segment, or not at that edition.
    """
    written = {
        "id": record_id,
        "owner_id": owner_id,
        "by": by,
        "slice": place.slice,
        "number": place.number,
        "edition": edition,
        "text": text,
    }
    return await database.transact(_in_correct, written)


async def _beside(of: Sized, work: Callable[[], T]) -> T:
    """Do work on many segments in a thread, so that nobody waits for the text of ten hours."""
    if len(of) <= _AT_ONCE:
        return work()
    return await trio.to_thread.run_sync(work, limiter=_THREADS)


async def _in_read_many(
    connection: Connection, record_id: UUID, owner_id: UUID | None, first: int, limit: int
) -> list[dict[str, Any]]:
    asked = {"id": record_id, "owner_id": owner_id, "first": first, "limit": limit}
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("segments_read"), asked)
        return await cursor.fetchall()


async def _in_read_one(
    connection: Connection, record_id: UUID, owner_id: UUID, place: Place
) -> OwnSegment | None:
    asked = {"id": record_id, "owner_id": owner_id, "slice": place.slice, "number": place.number}
    async with connection.cursor(row_factory=dict_row) as cursor:
        row = await (await cursor.execute(query("segment_read"), asked)).fetchone()
        return None if row is None else _own(row)


async def _in_count(connection: Connection, record_id: UUID, second: float) -> tuple[int, int]:
    row = await (
        await connection.execute(query("segments_counted"), {"id": record_id, "second": second})
    ).fetchone()
    return (0, 0) if row is None else (row[0], row[1])


async def _in_read_corrections(
    connection: Connection, record_id: UUID, place: Place
) -> tuple[Correction, ...]:
    asked = {"id": record_id, "slice": place.slice, "number": place.number, "limit": MOST_EDITIONS}
    async with connection.cursor(row_factory=class_row(Correction)) as cursor:
        await cursor.execute(query("corrections_read"), asked)
        return tuple(await cursor.fetchall())


async def _in_read_unplaced(connection: Connection, record_id: UUID) -> tuple[Unplaced, ...]:
    async with connection.cursor(row_factory=class_row(Unplaced)) as cursor:
        await cursor.execute(query("corrections_unplaced"), {"id": record_id, "limit": MOST_EDITIONS})
        return tuple(await cursor.fetchall())


async def _in_correct(connection: Connection, written: dict[str, Any]) -> int | None:
    row = await (await connection.execute(query("segment_corrected"), written)).fetchone()
    return None if row is None else row[0]


def _own(row: dict[str, Any]) -> OwnSegment:
    return OwnSegment(recognised=segment_from_row(row), edition=row["edition"], corrected=row["corrected"])

"""The queue in numbers: what waits where, and for how long. It is read often, and reads little."""

from attrs import frozen
from psycopg.rows import class_row

from storage.database import Connection, Database
from storage.sql import query

MOST_COUNTED = 100_000
SECONDS = 2.0


@frozen(kw_only=True)
class Heap:
    """Records alike in milestone, lane and state (`waiting`, `held` or `delayed`), and the longest stay."""

    milestone: str
    lane: str
    state: str
    records: int
    oldest_seconds: float


async def read_queue(database: Database) -> tuple[Heap, ...]:
    """Return a heap for each kind that there is; no more than `MOST_COUNTED` records are counted."""
    return await database.transact_within(SECONDS, in_read_queue)


async def in_read_queue(connection: Connection) -> tuple[Heap, ...]:
    """Do as `read_queue` does, asyncio-flavoured, on a connection that one has."""
    cursor = connection.cursor(row_factory=class_row(Heap))
    return tuple(await (await cursor.execute(query("queue_numbers"), {"limit": MOST_COUNTED})).fetchall())

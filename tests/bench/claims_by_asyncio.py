"""Empties the queue with the same statements by plain asyncio and psycopg, to see what Trio costs."""

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow, dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from storage.floors import BOTTOM
from storage.reading import record_from_row
from storage.record import Milestone
from storage.sql import query
from tests.bench.queue import (
    FAILURES_LIMIT,
    FINDINGS,
    LANE,
    LEASE_SECONDS,
    STATEMENT_SECONDS,
    Count,
    arguments,
)

Pool = AsyncConnectionPool[AsyncConnection[TupleRow]]


async def empty_queue(dsn: str, store: UUID, workers: int) -> Count:
    """Claim and settle by so many workers until there is no work."""
    count = Count()
    limited = make_conninfo(dsn, options=f"-c statement_timeout={int(STATEMENT_SECONDS * 1000)}")
    pool: Pool = AsyncConnectionPool(
        limited, min_size=1, max_size=max(2, workers), kwargs={"autocommit": True}, open=False, timeout=10
    )
    async with pool, asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(_work(pool, store, count))
    return count


async def _work(pool: Pool, store: UUID, count: Count) -> None:
    floor = BOTTOM
    while True:
        token = uuid4()
        async with asyncio.timeout(10), pool.connection(timeout=10) as connection:
            record = await _claim(connection, store, token, floor)
        if record is None:
            return
        async with asyncio.timeout(10), pool.connection(timeout=10) as connection:
            floor = await _read(connection, record)
        async with asyncio.timeout(10), pool.connection(timeout=10) as connection:
            await _settle(connection, record, token)
        count.settle()


async def _claim(
    connection: AsyncConnection[TupleRow], store: UUID, token: UUID, floor: datetime
) -> UUID | None:
    asked = {
        "token": token,
        "sign": None,
        "floors": [floor],
        "wake_from": BOTTOM,
        "claimed_by": "bench",
        "lanes": [LANE],
        "stores": [store],
        "failures_limit": FAILURES_LIMIT,
        "milestones": [Milestone.CREATED],
        "leases": [LEASE_SECONDS],
    }
    row = await (await connection.execute(query("claim"), asked)).fetchone()
    return None if row is None else row[0]


async def _read(connection: AsyncConnection[TupleRow], record: UUID) -> datetime:
    cursor = connection.cursor(row_factory=dict_row)
    row = await (await cursor.execute(query("read_record"), {"id": record})).fetchone()
    assert row is not None
    return record_from_row(row).created_at


async def _settle(connection: AsyncConnection[TupleRow], record: UUID, token: UUID) -> None:
    guard: dict[str, Any] = {"id": record, "token": token}
    conversion = {
        "audio_path": FINDINGS.audio_path,
        "declared_seconds": FINDINGS.declared_seconds,
        "decoded_seconds": FINDINGS.decoded_seconds,
        "audio_warnings": list(FINDINGS.audio_warnings),
    }
    reached = {"by": "bench", "detail": Jsonb({}), "milestone": Milestone.CONVERTED, "lane": "whisper"}
    async with connection.transaction():
        written = await connection.execute(query("write_conversion"), guard | conversion)
        assert written.rowcount == 1
        ended = await connection.execute(query("end_reached"), guard | reached)
        assert await ended.fetchone() is not None


if __name__ == "__main__":
    asyncio.run(empty_queue(*arguments())).report()

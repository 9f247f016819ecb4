"""Claims, reads and settles as the daemon does, as many records as each line of stdin says.

A process of its own that lives through all of a measurement, because what a process knows of the queue is a
part of what is measured. After each line it prints what it measured, as JSON, in milliseconds.
"""

import json
import sys
import time
from uuid import UUID, uuid4

import trio

from storage.claim import NoWork
from storage.claims import Claims, Passage, Settled
from storage.daemons import Sign
from storage.database import Connection, Database, open_database, open_loop
from storage.ending import Reached
from storage.record import Advance, Milestone, Record
from tests.bench.queue import FAILURES_LIMIT, LEASE_SECONDS, STATEMENT_SECONDS

LANE = "whisper"
KEEPER_SECONDS = 10.0
SIGN = Sign(host="bench", pid=1, beat_seconds=KEEPER_SECONDS, workers=1, lanes=())
FINDINGS = Advance(
    operation={"slice": 1}, recognised_seconds=60.0, found_language="en", segments=(), anew=False
)
PASSAGE = Passage(gives=Milestone.DONE, next_lane=None, milestone_limit=3600.0, retry_delay=5.0)


async def obey(dsn: str, store: UUID) -> None:
    """Do what stdin says until it ends."""
    async with (
        open_loop(),
        open_database(
            dsn, pool_size=2, call_seconds=30, statement_seconds=STATEMENT_SECONDS, listen=True
        ) as database,
    ):
        claims = Claims(
            database=database,
            stores=(store,),
            claimed_by="bench",
            failures_limit=FAILURES_LIMIT,
            leases={Milestone.TRANSCRIBE: LEASE_SECONDS},
            sign=lambda: SIGN,
        )
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            sys.stdout.write(json.dumps(await _work(claims, int(line))) + "\n")
            sys.stdout.flush()


async def entries(database: Database) -> int:
    """Return how many index entries of the table have been read so far."""

    async def _in_entries(connection: Connection) -> int:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        row = await (
            await connection.execute(
                "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'records'"
            )
        ).fetchone()
        assert row is not None
        return int(row[0] or 0)

    await trio.sleep(1.2)  # the other connections' counts arrive within a second
    return await database.transact(_in_entries)


async def _work(claims: Claims, records: int) -> dict[str, float]:
    took: list[float] = []
    before = await entries(claims.database)
    began = woken = time.perf_counter()
    await claims.wake()
    for _ in range(records):
        if time.perf_counter() - woken > KEEPER_SECONDS:
            woken = time.perf_counter()
            await claims.wake()
        asked = time.perf_counter()
        claim = await claims.claim(uuid4(), [LANE])
        took.append((time.perf_counter() - asked) * 1000)
        assert not isinstance(claim, NoWork)
        assert isinstance(await claims.read(claim.record_id), Record)
        assert isinstance(await claims.settle(claim, Reached(FINDINGS), PASSAGE, {}), Settled)
    wall = time.perf_counter() - began
    read = await entries(claims.database) - before
    took.sort()
    return {
        "rate": records / wall,
        "p50": took[len(took) // 2],
        "p99": took[len(took) * 99 // 100],
        "most": took[-1],
        "entries": read / records,
    }


if __name__ == "__main__":
    trio.run(obey, sys.argv[1], UUID(sys.argv[2]))

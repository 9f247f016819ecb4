"""Empties the queue as the daemon does: Trio, through `storage.claims`."""

from uuid import UUID, uuid4

import trio

from storage.claim import ClaimLost, NoWork
from storage.claims import Claims, Passage
from storage.database import open_database, open_loop
from storage.ending import Reached
from storage.record import Milestone, Record
from tests.bench.queue import (
    FAILURES_LIMIT,
    FINDINGS,
    LANE,
    LEASE_SECONDS,
    STATEMENT_SECONDS,
    Count,
    arguments,
)

PASSAGE = Passage(gives=Milestone.CONVERTED, next_lane="whisper", milestone_limit=3600.0, retry_delay=5.0)


async def empty_queue(dsn: str, store: UUID, workers: int) -> Count:
    """Claim and settle by so many workers until there is no work."""
    count = Count()
    async with (
        open_loop(),
        open_database(
            dsn, pool_size=max(2, workers), call_seconds=10, statement_seconds=STATEMENT_SECONDS, listen=True
        ) as database,
    ):
        claims = Claims(
            database=database,
            stores=(store,),
            claimed_by="bench",
            failures_limit=FAILURES_LIMIT,
            leases={Milestone.CREATED: LEASE_SECONDS},
        )
        async with trio.open_nursery() as nursery:
            for _ in range(workers):
                nursery.start_soon(_work, claims, count)
    return count


async def _work(claims: Claims, count: Count) -> None:
    while True:
        claim = await claims.claim(uuid4(), [LANE])
        if isinstance(claim, NoWork):
            return
        assert isinstance(await claims.read(claim.record_id), Record)
        settled = await claims.settle(claim, Reached(FINDINGS), PASSAGE, {})
        assert not isinstance(settled, ClaimLost)
        count.settle()


if __name__ == "__main__":
    trio.run(empty_queue, *arguments()).report()

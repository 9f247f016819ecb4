"""So many jobs that do nothing through pgqueuer."""

import asyncio

import psycopg
from pgqueuer import PgQueuer
from pgqueuer.db import PsycopgDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from tests.bench.queue import WARMING, Count


def main(dsn: str, jobs: int) -> None:
    """Fill the queue, empty it, report."""
    asyncio.run(_empty(dsn, jobs))


async def _empty(dsn: str, jobs: int) -> None:
    count = Count()
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        driver = PsycopgDriver(connection)
        queries, queuer = Queries(driver), PgQueuer(driver)

        async def nothing(_job: object) -> None:
            count.settle()

        queuer.entrypoint("nothing")(nothing)
        await queries.install()
        many = jobs + WARMING
        await queries.enqueue(["nothing"] * many, [None] * many, [0] * many)
        await connection.execute("ANALYZE")
        # It wants at least two of what it calls picked at once; one is taken by each claim all the same.
        await queuer.run(batch_size=1, max_concurrent_tasks=2, mode=QueueExecutionMode.drain)
    count.report()

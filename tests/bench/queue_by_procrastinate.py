"""So many jobs that do nothing through procrastinate."""

import asyncio

from procrastinate import App, PsycopgConnector

from tests.bench.queue import WARMING, Count


def main(dsn: str, jobs: int) -> None:
    """Fill the queue, empty it, report."""
    asyncio.run(_empty(dsn, jobs))


async def _empty(dsn: str, jobs: int) -> None:
    app, count = App(connector=PsycopgConnector(conninfo=dsn)), Count()

    async def nothing() -> None:
        count.settle()

    task = app.task(name="nothing")(nothing)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await task.batch_defer_async(*({} for _ in range(jobs + WARMING)))
        await app.connector.execute_query_async("ANALYZE procrastinate_jobs")
        await app.run_worker_async(concurrency=1, wait=False, install_signal_handlers=False)
    count.report()

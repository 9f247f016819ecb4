"""So many jobs that do nothing through our whole service."""

import tempfile
from pathlib import Path

import structlog
import trio

from daemon.parts import Ground
from tests.bench.queue import WARMING, Count
from tests.bench.queue_service import fill, serve_nothing


def main(dsn: str, jobs: int) -> None:
    """Fill the queue, empty it, report."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    trio.run(_empty, dsn, jobs)


async def _empty(dsn: str, jobs: int) -> None:
    count, done = Count(), trio.Event()

    def heard(_: object) -> None:
        count.settle()
        if count.settled == jobs + WARMING:
            done.set()

    async def visitor(ground: Ground) -> None:
        await trio.to_thread.run_sync(fill, dsn, ground.store, jobs + WARMING)
        await done.wait()

    with tempfile.TemporaryDirectory() as folder:
        await serve_nothing(dsn, Path(folder) / "state", visitor, heard)
    count.report()

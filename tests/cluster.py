"""Runs one real PostgreSQL for a whole test session: `python -m tests.cluster FOLDER`, until its stdin ends.

A process of its own, as the server's life is tied to the main thread of whoever starts it, and each test has
a Trio run of its own.
"""

import sys
from pathlib import Path

import structlog
import trio

from storage.embedded import embedded_postgres
from storage.folder import StateFolder


async def _serve(folder: StateFolder) -> None:
    async with embedded_postgres(folder) as cluster:
        sys.stdout.write(f"{cluster.dsn}\n")
        sys.stdout.flush()
        await trio.to_thread.run_sync(sys.stdin.read)


def main() -> None:
    """Print the DSN, then serve until nobody holds our stdin any more."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    folder = StateFolder(Path(sys.argv[1]))
    folder.prepare()
    with folder.locked():
        trio.run(_serve, folder)


if __name__ == "__main__":
    main()

"""What an idle service asks of its database: every statement of a minute, counted in the server's own log.

`python -m tests.bench.queue_idle DSN SECONDS` is the service, in a process of its own.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import psycopg
import structlog
import trio

from daemon.parts import Ground
from tests.bench.queue_service import serve_nothing
from tests.bench.server import postgres, server_log
from tests.bench.table import load, show

SECONDS = 60
WARMING_SECONDS = 5
_STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]*): (?P<first>[^\n]*)")
_TITLE_LENGTH = 60
_MARK = "SELECT '"  # what is left of the mark at the end


def run() -> None:
    """Measure and print."""
    with postgres() as dsn, server_log(dsn) as log:
        before = load()
        command = [sys.executable, "-m", "tests.bench.queue_idle", dsn, str(SECONDS)]
        subprocess.run(command, check=True, timeout=SECONDS + 60)
        text = log.read_text("utf-8", "replace")
    _, _, measured = text.partition("begin of the measurement")
    measured, _, _ = measured.partition("end of the measurement")
    counted = Counter(match["first"] for match in _STATEMENT.finditer(measured))
    del counted[_MARK]
    show(
        "Statements of an idle service with three workers",
        ("statements/s", "statement"),
        [
            *((number / SECONDS, first[:_TITLE_LENGTH]) for first, number in counted.most_common()),
            (counted.total() / SECONDS, "together"),
        ],
        (f"over {SECONDS} s, by the server's log; load before {before}, after {load()}",),
    )


async def _idle(dsn: str, seconds: float) -> None:
    async def visitor(_ground: Ground) -> None:
        await trio.sleep(WARMING_SECONDS)
        await trio.to_thread.run_sync(_say, dsn, "begin of the measurement")
        await trio.sleep(seconds)
        await trio.to_thread.run_sync(_say, dsn, "end of the measurement")

    with tempfile.TemporaryDirectory() as folder:
        await serve_nothing(dsn, Path(folder) / "state", visitor, workers=3)


def _say(dsn: str, words: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"SELECT '{words}'".encode())


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    trio.run(_idle, sys.argv[1], float(sys.argv[2]))

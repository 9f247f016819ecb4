"""From a submission's accept to the start of its first stage, in an idle service, with and without the bell.

`python -m tests.bench.queue_start DSN on|off TIMES` is the child that measures, in a process of its own.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

import structlog
import trio

from daemon.parts import Ground
from storage.accounts import add_account
from storage.record import Milestone, Record
from storage.submissions import accept
from tests.bench.queue_service import serve_nothing
from tests.bench.server import another, postgres
from tests.bench.table import load, show
from tests.making import a_submission

TIMES = {"on": 400, "off": 40}
PAUSES = {"on": 0.1, "off": 1.0}  # seconds over which the pauses before submissions are spread, evenly
WARMING = 5
_GOLDEN = 0.618


def run() -> None:
    """Measure and print."""
    with postgres() as dsn:
        before = load()
        rows = [(bell, *_once(another(dsn, f"bell_{bell}"), bell, times)) for bell, times in TIMES.items()]
        show(
            "From accept to the start of the first stage, idle service, three workers",
            ("bell", "p50, ms", "p99, ms", "longest, ms", "accept alone, p50, ms"),
            rows,
            (
                f"{TIMES['on']} with the bell, {TIMES['off']} without, one by one; accept included",
                f"without the bell each waits for the next poll; load before {before}, after {load()}",
            ),
        )


def _once(dsn: str, bell: str, times: int) -> list[float]:
    command = [sys.executable, "-m", "tests.bench.queue_start", dsn, bell, str(times)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=300)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


async def _measure(dsn: str, bell: str, times: int) -> list[float]:
    started: dict[UUID, trio.Event] = {}
    began: dict[UUID, float] = {}
    whole, accepts = [], []

    def heard(record: Record) -> None:
        if record.milestone is Milestone.CREATED:
            began[record.id] = time.perf_counter()
            started[record.id].set()

    async def visitor(ground: Ground) -> None:
        owner = await add_account(ground.database, "bench")
        for number in range(times + WARMING):
            await trio.sleep(number * _GOLDEN % 1.0 * PAUSES[bell])
            submission = await a_submission(ground.store, owner)
            started[submission.id] = trio.Event()
            asked = time.perf_counter()
            await accept(ground.database, submission, lane=ground.first_lane)
            accepted = time.perf_counter()
            await started[submission.id].wait()
            if number >= WARMING:
                whole.append((began[submission.id] - asked) * 1000)
                accepts.append((accepted - asked) * 1000)

    with tempfile.TemporaryDirectory() as folder:
        await serve_nothing(dsn, Path(folder) / "state", visitor, heard, listen=bell == "on", workers=3)
    whole.sort()
    accepts.sort()
    return [whole[len(whole) // 2], whole[len(whole) * 99 // 100], whole[-1], accepts[len(accepts) // 2]]


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    sys.stdout.write(json.dumps(trio.run(_measure, sys.argv[1], sys.argv[2], int(sys.argv[3]))) + "\n")

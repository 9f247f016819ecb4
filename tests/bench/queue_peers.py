"""The same job that does nothing, through our service and through two other queues in PostgreSQL.

Each takes one job at a time, with one worker, in a process and a database of its own, turn by turn. They
promise different things: see docs/benchmarks.md before comparing.
"""

import json
import subprocess
import sys
from statistics import median

from tests.bench.server import another, postgres
from tests.bench.table import load, show

SIDES = ("rubezh", "procrastinate", "pgqueuer")
RECORDS = 1500


def run(rounds: int) -> None:
    """Measure and print."""
    with postgres() as dsn:
        before = load()
        found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
        for number in range(rounds):
            for side in SIDES[number % 3 :] + SIDES[: number % 3]:
                found[side].append(_once(side, another(dsn, f"{side}_{number}")))
        rates = {side: [one["settled"] / one["wall"] for one in found[side]] for side in SIDES}
        costs = {side: [one["cpu"] / one["settled"] * 1000 for one in found[side]] for side in SIDES}
        ratios = [f"rubezh / {side}: {_ratio(rates['rubezh'], rates[side]):.2f}" for side in SIDES[1:]]
        show(
            "A job that does nothing, one worker, one job a claim",
            ("", "jobs/s", "lowest", "highest", "client CPU ms/job"),
            [
                (side, median(rates[side]), min(rates[side]), max(rates[side]), median(costs[side]))
                for side in SIDES
            ],
            (
                f"{', '.join(ratios)} (medians of {rounds} rounds of {RECORDS} jobs)",
                f"load before {before}, after {load()}",
            ),
        )


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return median(one / other for one, other in zip(ours, theirs, strict=True))


def _once(side: str, dsn: str) -> dict[str, float]:
    program = f"from tests.bench.queue_by_{side} import main; main({dsn!r}, {RECORDS})"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=300)
    report: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    assert report["settled"] >= RECORDS
    return report

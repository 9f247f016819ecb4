"""What a claim costs beside a history, behind a crowd that is not ready, and under an old snapshot.

For each size of history two databases are alike but for one transaction that keeps its snapshot open all the
while, as a backup does. Both grow older at the same time, by other hands; at each age one worker measures
both, a batch here and a batch there, so that both see the same machine. What it measures before the snapshot
opens connections, prepares statements and fills caches, and is not counted.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from statistics import median
from uuid import UUID

import psycopg
from psycopg import IsolationLevel, sql

from tests.bench.queue_worker import LANE
from tests.bench.server import another, migrated, postgres, settle_down
from tests.bench.table import load, say, show

HISTORIES = (10_000, 1_000_000)
AHEAD = 50_000
SIDES = ("clean", "snapshot")
AGES = 4  # how often they grow older and are measured,
OLDER = 5_000  # by so many records each time,
BATCHES = 4  # in so many batches each
BATCH = 250

Report = dict[str, float]


def run() -> None:
    """Measure and print."""
    with postgres() as dsn:
        store = migrated(dsn)
        for history in HISTORIES:
            _measure(dsn, store, history)


def _measure(dsn: str, store: UUID, history: int) -> None:
    before = load()
    say(f"\nmaking {history:,} done records")
    _fill(dsn, store, history)
    names = {side: f"{side}_{history}" for side in SIDES}
    sides = {side: another(dsn, name, "rubezh") for side, name in names.items()}
    found: dict[str, list[list[Report]]] = {side: [] for side in SIDES}
    with ExitStack() as stack:
        workers = {side: stack.enter_context(_worker(each, store)) for side, each in sides.items()}
        _take_turns(workers)
        stack.enter_context(_old_snapshot(sides["snapshot"]))
        for _ in range(AGES):
            _grow_older(sides.values(), store)
            for side, reports in _take_turns(workers).items():
                found[side].append(reports)
    _show(history, found, before)
    for name in names.values():
        _drop(dsn, name)


def _take_turns(workers: Mapping[str, subprocess.Popen[str]]) -> dict[str, list[Report]]:
    found: dict[str, list[Report]] = {side: [] for side in workers}
    for number in range(BATCHES):
        for side in sorted(workers, reverse=bool(number % 2)):
            found[side].append(_told(workers[side], BATCH))
    return found


def _grow_older(dsns: Iterable[str], store: UUID) -> None:
    commands = [[sys.executable, "-m", "tests.bench.queue_age", dsn, str(store), str(OLDER)] for dsn in dsns]
    hands = [subprocess.Popen(command) for command in commands]
    assert [hand.wait(timeout=600) for hand in hands] == [0 for _ in hands]


def _show(history: int, found: dict[str, list[list[Report]]], before: str) -> None:
    clean, held = ([[one["rate"] for one in reports] for reports in found[side]] for side in SIDES)
    by_age = [
        median(ours / theirs for ours, theirs in zip(*batches, strict=True))
        for batches in zip(held, clean, strict=True)
    ]
    ages = ", ".join(f"{ratio:.2f} after {OLDER * n:,} records" for n, ratio in enumerate(by_age, start=1))
    show(
        f"Claim, read and settle beside {history:,} done records, {AHEAD:,} deferred or held ahead",
        ("", "records/s", "claim p50, ms", "p99, ms", "longest, ms", "index entries"),
        [(side, *_middle([one for reports in found[side] for one in reports])) for side in SIDES],
        (
            f"snapshot / clean, in records per second: {ages}",
            f"medians of {BATCHES} batches of {BATCH} records at each age; index entries: read a record",
            f"load before {before}, after {load()}",
        ),
    )


def _middle(reports: list[Report]) -> Iterator[float]:
    for fact in ("rate", "p50", "p99"):
        yield median(report[fact] for report in reports)
    yield max(report["most"] for report in reports)
    yield median(report["entries"] for report in reports)


@contextmanager
def _worker(dsn: str, store: UUID) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.bench.queue_worker", dsn, str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        yield worker


def _told(worker: subprocess.Popen[str], records: int) -> Report:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{records}\n")
    worker.stdin.flush()
    report: Report = json.loads(worker.stdout.readline())
    return report


@contextmanager
def _old_snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM stores")
        yield


def _drop(dsn: str, name: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _fill(dsn: str, store: UUID, history: int) -> None:
    """Leave a history that is done, a crowd after it that is not ready, and after that what is ready."""
    ready = BATCH * BATCHES * (AGES + 1) + OLDER * AGES
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("TRUNCATE records CASCADE")
        for values, count in ((_DONE, history), (_AHEAD, AHEAD), (_READY, ready)):
            connection.execute(_INSERT + values, {"store": store, "count": count, "lane": LANE})
    settle_down(dsn)


_INSERT = """
INSERT INTO records (
    id, owner_id, store_id, filename, source_path, source_bytes, source_sha256, fingerprint,
    created_at, milestone, lane, recognised_text, wake_at,
    claim_token, claimed_by, claimed_at, lease_seconds, lease_until
)
SELECT gen_random_uuid(), accounts.id, %(store)s, 'bench.flac', 'records/x/source', 1, sha256('x'),
    sha256('x'), made.*
FROM accounts, generate_series(1, %(count)s) AS n, LATERAL """
_DONE = """(SELECT clock_timestamp() - interval '90 days' + make_interval(secs => n),
    'done', NULL, repeat('word ', 40), NULL::timestamptz,
    NULL::uuid, NULL, NULL::timestamptz, NULL::float8, NULL::timestamptz) AS made"""
# One half is held under a lease far from its end, the other deferred; both were created before what is ready.
_AHEAD = """(SELECT clock_timestamp() - interval '2 hours' + make_interval(secs => n * 0.01),
    'transcribe', %(lane)s, NULL, clock_timestamp() + interval '3 hours',
    CASE WHEN n %% 2 = 0 THEN gen_random_uuid() END, CASE WHEN n %% 2 = 0 THEN 'another' END,
    CASE WHEN n %% 2 = 0 THEN clock_timestamp() END, CASE WHEN n %% 2 = 0 THEN 10800.0 END,
    CASE WHEN n %% 2 = 0 THEN clock_timestamp() + interval '3 hours' END) AS made"""
_READY = """(SELECT clock_timestamp() - interval '1 hour' + make_interval(secs => n * 0.01),
    'transcribe', %(lane)s, NULL, NULL::timestamptz,
    NULL::uuid, NULL, NULL::timestamptz, NULL::float8, NULL::timestamptz) AS made"""

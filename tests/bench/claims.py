"""Claims and settles per second: through `storage.claims` on Trio, and the same statements by plain asyncio.

Both empty the same queue, turn by turn, each in a process of its own. With the disk waited for, the disk is
what is measured; without, it is our own code.
"""

import json
import subprocess
import sys
from statistics import median
from uuid import UUID

import psycopg
from psycopg import sql

from tests.bench.queue import LANE, WARMING
from tests.bench.server import migrated, postgres, settle_down
from tests.bench.table import load, show

WAYS = {"trio": "tests.bench.claims_by_trio", "asyncio": "tests.bench.claims_by_asyncio"}
RECORDS = 1000
WORKERS = (1, 3)


def run(rounds: int) -> None:
    """Measure and print."""
    with postgres() as dsn:
        store = migrated(dsn)
        for disk in ("on", "off"):
            _set_disk(dsn, disk)
            for workers in WORKERS:
                _measure(dsn, store, workers, rounds, disk)


def _measure(dsn: str, store: UUID, workers: int, rounds: int, disk: str) -> None:
    before = load()
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        # Turn by turn, and the first turn is each one's in turn.
        for way in sorted(WAYS, reverse=bool(number % 2)):
            _fill(dsn, store)
            found[way].append(_once(way, dsn, store, workers))
    rates = {way: [one["settled"] / one["wall"] for one in found[way]] for way in WAYS}
    costs = {way: [one["cpu"] / one["settled"] * 1000 for one in found[way]] for way in WAYS}
    ratios = [ours / theirs for ours, theirs in zip(rates["trio"], rates["asyncio"], strict=True)]
    waited = "waited for" if disk == "on" else "not waited for"
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    show(
        f"Claim and settle, {workers} worker{'s' * (workers > 1)}, the disk is {waited}",
        ("", "records/s", "lowest", "highest", "CPU ms/record"),
        [(way, median(rates[way]), min(rates[way]), max(rates[way]), median(costs[way])) for way in WAYS],
        (
            f"trio / asyncio: {median(ratios):.2f} of the records per second (each round: {each})",
            f"{rounds} rounds of {RECORDS} records; load before {before}, after {load()}",
        ),
    )


def _once(way: str, dsn: str, store: UUID, workers: int) -> dict[str, float]:
    command = [sys.executable, "-m", WAYS[way], dsn, str(store), str(workers)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=600)
    report: dict[str, float] = json.loads(done.stdout)
    assert report["settled"] == RECORDS
    return report


def _set_disk(dsn: str, wait: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            sql.SQL("ALTER SYSTEM SET fsync = {}").format(sql.SQL("on" if wait == "on" else "off"))
        )
        connection.execute("SELECT pg_reload_conf()")


def _fill(dsn: str, store: UUID) -> None:
    """Leave exactly the records of one round, in a table as fresh as at the first."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("TRUNCATE records CASCADE")
        connection.execute(
            """
            INSERT INTO records (id, owner_id, filename, store_id, source_path, source_bytes, source_sha256,
                fingerprint, lane)
            SELECT gen_random_uuid(), accounts.id, 'bench.flac', %s, 'records/x/source', 1,
                sha256('x'), sha256('x'), %s
            FROM accounts, generate_series(1, %s)
            """,
            (store, LANE, RECORDS + WARMING),
        )
    settle_down(dsn)

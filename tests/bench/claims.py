"""Claims and settles per second: through `storage.claims` on Trio, and the same statements by plain asyncio.

Both empty the same queue, turn by turn, each in a process of its own. With the disk waited for, the disk is
what is measured; without, it is our own code.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from uuid import UUID, uuid4

import psycopg
import trio
from psycopg import sql

from storage.database import open_database, open_loop
from storage.migrate import migrate
from tests.bench.queue import LANE, WARMING
from tests.bench.table import load, say, show

WAYS = {"trio": "tests.bench.claims_by_trio", "asyncio": "tests.bench.claims_by_asyncio"}
RECORDS = 1000
WORKERS = (1, 3)


def run(rounds: int) -> None:
    """Measure and print."""
    with _postgres() as dsn:
        trio.run(_migrate, dsn)
        store = _prepare(dsn)
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


@contextmanager
def _postgres() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="rubezh-bench-") as folder:
        Path(folder).chmod(0o755)  # as root the server runs as another user
        command = [sys.executable, "-m", "tests.cluster", f"{folder}/cluster"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            dsn = server.stdout.readline().strip()
            if not dsn:
                raise RuntimeError("PostgreSQL did not start; its own words are above")
            say(f"PostgreSQL {_version(dsn)}, from the wheel")
            yield dsn


def _version(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        return str(connection.info.parameter_status("server_version"))


async def _migrate(dsn: str) -> None:
    async with (
        open_loop(),
        open_database(dsn, pool_size=2, call_seconds=20, statement_seconds=10, listen=True) as database,
    ):
        await migrate(database)


def _prepare(dsn: str) -> UUID:
    store = uuid4()
    with psycopg.connect(dsn) as connection:
        connection.execute("INSERT INTO stores (id) VALUES (%s)", (store,))
        connection.execute("INSERT INTO accounts (id, name) VALUES (%s, 'bench')", (uuid4(),))
    return store


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
        connection.execute("VACUUM ANALYZE records")
        connection.execute("CHECKPOINT")

"""What the tests share: one real PostgreSQL for the session, a migrated database of its own for each test."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import hypothesis
import psycopg
import pytest
import trio

from storage.audio import Store
from storage.database import Database, open_database, open_loop
from storage.migrate import migrate
from storage.mounting import mount_store
from tests.stages.media.shelf import fill

TEMPLATE = "rubezh_template"
OUTER = "RUBEZH_TEST_CLUSTER"

hypothesis.settings.register_profile("unhurried", deadline=None)  # a busy machine is no fault of a property
hypothesis.settings.load_profile("unhurried")


def dsn_of(cluster: str, database: str) -> str:
    """Return the cluster's DSN with another database named in it."""
    return psycopg.conninfo.make_conninfo(cluster, dbname=database)


@pytest.fixture(scope="session")
def reachable() -> Iterator[Path]:
    """A temporary folder that other users may pass through (pytest's own are private)."""
    folder = Path(tempfile.mkdtemp(prefix="rubezh-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(reachable: Path) -> Iterator[str]:
    """The DSN of the session's PostgreSQL, which holds a migrated template database.

    It does not wait for the disk: what must survive a power cut is tested on clusters of its own. A run of
    these tests within another one is told of that one's.
    """
    if outer := os.environ.get(OUTER):
        yield outer
        return
    command = [sys.executable, "-m", "tests.cluster", str(reachable / "cluster")]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdin is not None
    dsn = server.stdout.readline().strip()
    assert dsn, "the session's PostgreSQL did not start; its own words are above"
    with psycopg.connect(dsn, autocommit=True) as connection:
        for setting in ("fsync = off", "full_page_writes = off", "max_wal_size = '4GB'"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    trio.run(_migrate, dsn_of(dsn, TEMPLATE))
    yield dsn
    server.communicate(timeout=60)


@pytest.fixture
def empty_dsn(cluster: str) -> Iterator[str]:
    """The DSN of a database of this test's own with nothing in it."""
    with own_database(cluster, "template0") as dsn:
        yield dsn


@pytest.fixture
def dsn(cluster: str) -> Iterator[str]:
    """The DSN of a migrated database of this test's own."""
    with own_database(cluster, TEMPLATE) as dsn:
        yield dsn


@pytest.fixture
async def loop() -> AsyncIterator[None]:
    """A running asyncio loop inside this test's Trio run."""
    async with open_loop():
        yield


@pytest.fixture
async def database(loop: None, dsn: str) -> AsyncIterator[Database]:
    """An open, migrated database of this test's own."""
    async with open_database(dsn, pool_size=10, call_seconds=20, statement_seconds=10, listen=True) as opened:
        yield opened


@pytest.fixture
async def store(database: Database, tmp_path: Path) -> Store:
    """An empty store of this test's own, known to its database."""
    root = tmp_path / "store"
    root.mkdir()
    return await mount_store(database, root)


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with every odd recording that `tests.stages.media.shelf` names, made once a session."""
    folder = tmp_path_factory.mktemp("shelf")
    fill(folder)
    return folder


@contextmanager
def own_database(cluster: str, template: str) -> Iterator[str]:
    """Make a database as a copy of `template`; it is dropped when the block is left."""
    name = f"t_{uuid4().hex}"
    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield dsn_of(cluster, name)
    finally:
        with psycopg.connect(cluster, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def _migrate(dsn: str) -> None:
    async with (
        open_loop(),
        open_database(dsn, pool_size=2, call_seconds=20, statement_seconds=10, listen=True) as database,
    ):
        await migrate(database)

"""A PostgreSQL of the benchmarks' own, with the settings of the embedded one, and databases in it."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import trio
from psycopg import sql
from psycopg.conninfo import make_conninfo

from storage.database import open_database, open_loop
from storage.migrate import migrate
from tests.bench.table import say


@contextmanager
def postgres() -> Iterator[str]:
    """Run a new cluster in a folder of its own; give the DSN of its database, which is empty."""
    with tempfile.TemporaryDirectory(prefix="rubezh-bench-") as folder:
        Path(folder).chmod(0o755)  # as root the server runs as another user
        command = [sys.executable, "-m", "tests.cluster", f"{folder}/cluster"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            dsn = server.stdout.readline().strip()
            if not dsn:
                raise RuntimeError("PostgreSQL did not start; its own words are above")
            say(f"PostgreSQL {_version(dsn)}, from the wheel, with the settings of the embedded one")
            yield dsn


def migrated(dsn: str) -> UUID:
    """Bring the schema into a database, with one account and one store; return the store."""
    trio.run(_migrate, dsn)
    store = uuid4()
    with psycopg.connect(dsn) as connection:
        connection.execute("INSERT INTO stores (id) VALUES (%s)", (store,))
        connection.execute("INSERT INTO accounts (id, name) VALUES (%s, 'bench')", (uuid4(),))
    return store


def another(dsn: str, name: str, template: str = "template0") -> str:
    """Make a database beside the one at `dsn`, a copy of `template`; return its DSN."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
    return make_conninfo(dsn, dbname=name)


@contextmanager
def server_log(dsn: str) -> Iterator[Path]:
    """Have the server log every statement while the block runs; give the file it writes them into."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        [data] = connection.execute("SHOW data_directory").fetchone() or [""]
        for value in ("all", "none"):
            connection.execute(sql.SQL("ALTER SYSTEM SET log_statement = {}").format(value))
            connection.execute("SELECT pg_reload_conf()")
            if value == "all":
                yield Path(data).parent / "log"


def settle_down(dsn: str) -> None:
    """Have what was prepared vacuumed, counted and written, so that no measurement pays for it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _version(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        return str(connection.info.parameter_status("server_version"))


async def _migrate(dsn: str) -> None:
    async with (
        open_loop(),
        open_database(dsn, pool_size=2, call_seconds=20, statement_seconds=10, listen=True) as database,
    ):
        await migrate(database)

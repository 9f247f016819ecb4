"""The schema moves forwards, whole: by several processes at once, killed half-way, never by an older one."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import psycopg
import pytest
import trio

from storage.database import Database, open_database
from storage.errors import DatabaseRefused, DatabaseUnavailable
from storage.migrate import Migration, installation, migrate, migrations
from tests.builders import ask
from tests.processes import CHECKOUT, eventually

KNOWN = migrations()
NEXT = len(KNOWN) + 1

# Says that it is there, waits for a word, migrates up to one slow step of its own, says how many it took.
PROGRAM = """
import sys, trio
from storage.database import open_database, open_loop
from storage.migrate import Migration, migrate, migrations

async def main(dsn, seconds):
    slow = f"CREATE TABLE half (); SELECT pg_sleep({seconds}); CREATE TABLE whole ()"
    known = (*migrations(), Migration(len(migrations()) + 1, "slow", slow))
    async with open_loop(), open_database(
        dsn, pool_size=1, call_seconds=1, statement_seconds=0.2, listen=True
    ) as database:
        print("ready", flush=True)
        sys.stdin.readline()
        print(await migrate(database, known), flush=True)

trio.run(main, sys.argv[1], float(sys.argv[2]))
"""


@pytest.fixture
async def empty(loop: None, empty_dsn: str) -> AsyncIterator[Database]:
    """An open database with nothing in it."""
    async with open_database(
        empty_dsn, pool_size=6, call_seconds=20, statement_seconds=10, listen=True
    ) as opened:
        yield opened


def slow_step(seconds: float) -> Migration:
    """Return the step that the program takes."""
    return Migration(NEXT, "slow", f"CREATE TABLE half (); SELECT pg_sleep({seconds}); CREATE TABLE whole ()")


@contextmanager
def programs(count: int, dsn: str, seconds: float) -> "Iterator[list[subprocess.Popen[str]]]":
    """Start as many processes, each ready to migrate at a word; none is left when the block ends."""
    command = [sys.executable, "-c", PROGRAM, dsn, str(seconds)]
    started = [
        subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for program in started:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
        yield started
    finally:
        for program in started:
            program.kill()
            program.communicate()


def names(dsn: str) -> set[str]:
    """Return the tables there are."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {row[0] for row in rows}


def reached(dsn: str) -> list[tuple[int, str]]:
    """Return the steps that were taken, in order."""
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()


def sleeping(dsn: str) -> bool:
    """Tell whether a session is in the middle of the slow step."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            """SELECT 1 FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event = 'PgSleep'"""
        ).fetchall()
    return bool(rows)


def test_s_s8_four_processes_migrate_at_once(empty_dsn: str) -> None:
    """One of them takes every step, the others wait for it, past any timeout, and find nothing to do."""
    with programs(4, empty_dsn, 0.6) as started:
        for program in started:
            assert program.stdin is not None
            program.stdin.write("go\n")
            program.stdin.flush()
        answers = sorted(program.communicate(timeout=30)[0] for program in started)
        assert [program.returncode for program in started] == [0] * 4
    assert answers == ["0\n", "0\n", "0\n", f"{NEXT}\n"]
    assert reached(empty_dsn) == [*((step.number, step.name) for step in KNOWN), (NEXT, "slow")]
    assert names(empty_dsn) >= {"records", "events", "half", "whole"}


async def test_s_s8_killed_half_way_it_is_the_old_schema_and_the_next_start_completes_it(
    empty: Database, empty_dsn: str
) -> None:
    """Nothing of the step is there after the kill; the next waits for the dead one's session and takes it."""
    await migrate(empty)
    old = names(empty_dsn)
    with programs(1, empty_dsn, 1.0) as [program]:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
        eventually(lambda: sleeping(empty_dsn), "the slow step has begun")
        os.kill(program.pid, signal.SIGKILL)
        program.wait(timeout=5)
        assert names(empty_dsn) == old
        assert await migrate(empty, (*KNOWN, slow_step(0))) == 1
    assert names(empty_dsn) == old | {"half", "whole"}
    assert reached(empty_dsn)[-1] == (NEXT, "slow")


async def test_s_s8_killed_in_the_first_migration_the_database_is_empty(
    empty: Database, empty_dsn: str
) -> None:
    """All steps of one start are one transaction: killed in the last of them, none has been taken."""
    with programs(1, empty_dsn, 0.5) as [program]:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
        eventually(lambda: sleeping(empty_dsn), "the slow step has begun")
        os.kill(program.pid, signal.SIGKILL)
        assert names(empty_dsn) == set()
    assert await migrate(empty) == len(KNOWN)


async def test_s_s9_a_newer_database_is_refused(empty: Database, empty_dsn: str) -> None:
    """One sentence with both versions and what to do; the database is as it was, down to the last table."""
    assert await migrate(empty, (*KNOWN, slow_step(0))) == NEXT
    before = names(empty_dsn), reached(empty_dsn)
    with pytest.raises(DatabaseRefused) as refused:
        await migrate(empty)
    assert str(refused.value) == (
        f"the database has schema {NEXT}, newer than the {len(KNOWN)} this program knows; "
        "start the newer program, or restore a backup made before it"
    )
    assert (names(empty_dsn), reached(empty_dsn)) == before


async def test_a_schema_up_to_date_is_left_alone(empty: Database) -> None:
    """The first start takes every step, those after it none."""
    assert [await migrate(empty) for _ in range(3)] == [len(KNOWN), 0, 0]


async def test_a_step_that_fails_leaves_the_old_schema(empty: Database, empty_dsn: str) -> None:
    """Also what the steps before it did in this start is undone, and the error is told as it is."""
    broken = Migration(NEXT + 1, "broken", "CREATE TABLE more (); SELECT * FROM absent")
    with pytest.raises(psycopg.errors.UndefinedTable, match="absent"):
        await migrate(empty, (*KNOWN, slow_step(0), broken))
    assert names(empty_dsn) == set()
    assert await migrate(empty, (*KNOWN, slow_step(0))) == NEXT


async def test_a_long_step_is_not_cut_by_the_limits_of_a_call(loop: None, empty_dsn: str) -> None:
    """Neither the server's limit for a statement nor ours for a call ends a migration."""
    async with open_database(
        empty_dsn, pool_size=1, call_seconds=0.5, statement_seconds=0.2, listen=True
    ) as database:
        assert await migrate(database, (*KNOWN, slow_step(0.8))) == NEXT
        assert await ask(database, "SHOW statement_timeout") == [{"statement_timeout": "200ms"}]


async def test_a_database_that_takes_no_writes_is_away(loop: None, empty_dsn: str) -> None:
    """A standby, or one set to read only, may become writable: it is away, in the server's own words."""
    name = psycopg.conninfo.conninfo_to_dict(empty_dsn)["dbname"]
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        identifier = psycopg.sql.Identifier(str(name))
        connection.execute(
            psycopg.sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(identifier)
        )
    async with open_database(
        empty_dsn, pool_size=1, call_seconds=5, statement_seconds=5, listen=True
    ) as database:
        with pytest.raises(DatabaseUnavailable, match="read-only transaction"):
            await migrate(database)


async def test_a_cancelled_migration_leaves_the_old_schema(empty: Database, empty_dsn: str) -> None:
    """A stop in the middle of a long step does not wait for it, and nothing of it stays."""
    with trio.fail_after(5), trio.move_on_after(0.3) as scope:
        await migrate(empty, (*KNOWN, slow_step(30)))
    assert scope.cancelled_caught
    assert names(empty_dsn) == set()
    assert await migrate(empty) == len(KNOWN)


def test_the_steps_are_numbered_from_one_without_gaps() -> None:
    """Each has a name, and they are in order: the number says how far a database is."""
    assert [step.number for step in KNOWN] == list(range(1, len(KNOWN) + 1))
    assert all(step.name and step.text.startswith("--") for step in KNOWN)


async def test_an_installation_has_one_id(empty: Database) -> None:
    """Whoever asks, and however many at once, gets the id that was made first."""
    await migrate(empty)
    ids = []

    async def look() -> None:
        ids.append(await installation(empty))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(look)
    assert len({*ids, await installation(empty)}) == 1

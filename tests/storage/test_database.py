"""The one crossing: every call ends in time, whatever the server does, and leaves nothing open behind it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import LiteralString
from uuid import uuid4

import psycopg
import pytest
import trio

from storage import database as under_test
from storage.database import Connection, Database, open_database
from storage.errors import DatabaseRefused, DatabaseUnavailable, DatabaseUnreached, DataRefused
from tests.builders import ask
from tests.processes import CHECKOUT
from tests.waiting import until
from tests.wire import Failing, Fault, Towards, open_wire

NOBODY_THERE = "host=/nowhere/at/all dbname=rubezh"


@pytest.fixture
async def single(loop: None, dsn: str) -> AsyncIterator[Database]:
    """A database with one connection: whatever is left in it is met by the next call."""
    async with open_database(dsn, pool_size=1, call_seconds=5, statement_seconds=10, listen=True) as opened:
        await ask(opened, "CREATE TABLE kept (n integer)")
        yield opened


async def _in_sleep(connection: Connection) -> None:
    await connection.execute("SELECT pg_sleep(30)")


async def _in_insert_then_sleep(connection: Connection) -> None:
    async with connection.transaction():
        await connection.execute("INSERT INTO kept VALUES (1)")
        await connection.execute("SELECT pg_sleep(30)")


async def _in_insert_then_dawdle(connection: Connection) -> None:
    async with connection.transaction():
        await connection.execute("INSERT INTO kept VALUES (1)")
        await asyncio.sleep(30)


async def nothing_is_left(database: Database) -> None:
    """See that no session works or holds a transaction, and that the one connection serves the next call."""
    statement = """SELECT state, query FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND state IS DISTINCT FROM 'idle'"""
    with trio.fail_after(5):
        assert await ask(database, statement) == []
        assert await ask(database, "SELECT n FROM kept") == []


async def none_is_left(database: Database, statement: LiteralString, *values: object) -> None:
    """Wait, not for ever, until a question has no rows for its answer."""
    with trio.fail_after(5):
        while True:
            if not await ask(database, statement, values):
                return
            await trio.sleep(0.01)


HANGING = [_in_sleep, _in_insert_then_sleep, _in_insert_then_dawdle]


@pytest.mark.parametrize("work", HANGING)
async def test_a_call_that_hangs_ends_at_its_deadline(
    single: Database, work: Callable[[Connection], Awaitable[None]]
) -> None:
    """It is told as a database that is away, in time, with nothing done and the connection fit for use."""
    started = trio.current_time()
    with pytest.raises(DatabaseUnavailable, match=r"did not answer within 0\.3 s"):
        await single.transact_within(0.3, work)
    assert trio.current_time() - started < 2
    await nothing_is_left(single)


@pytest.mark.parametrize("work", HANGING)
async def test_a_cancelled_call_leaves_nothing_open(
    single: Database, work: Callable[[Connection], Awaitable[None]]
) -> None:
    """A cancel from outside stays a cancel, and rolls back on the way."""
    started = trio.current_time()
    with trio.move_on_after(0.2) as scope:
        await single.transact(work)
    assert scope.cancelled_caught
    assert trio.current_time() - started < 2
    await nothing_is_left(single)


async def test_a_lock_that_is_not_given_ends_at_the_deadline(single: Database, dsn: str) -> None:
    """Waiting for somebody else's row is bounded like everything else, and waits for nobody afterwards."""
    await ask(single, "INSERT INTO kept VALUES (7)")
    with psycopg.connect(dsn) as holding:
        holding.execute("SELECT n FROM kept FOR UPDATE")

        async def _in_update(connection: Connection) -> None:
            await connection.execute("UPDATE kept SET n = n + 1")

        with pytest.raises(DatabaseUnavailable):
            await single.transact_within(0.3, _in_update)
        holding.rollback()
    assert await ask(single, "SELECT n FROM kept") == [{"n": 7}]
    await ask(single, "DELETE FROM kept")
    await nothing_is_left(single)


async def test_the_server_has_a_limit_of_its_own(loop: None, dsn: str) -> None:
    """A statement past `statement_seconds` is ended by the server, before our own deadline."""
    async with open_database(
        dsn, pool_size=1, call_seconds=20, statement_seconds=0.2, listen=True
    ) as database:
        with trio.fail_after(5), pytest.raises(DatabaseUnavailable, match="statement timeout"):
            await database.transact(_in_sleep)
        assert await ask(database, "SHOW statement_timeout") == [{"statement_timeout": "200ms"}]


@pytest.mark.parametrize("work", [_in_insert_then_sleep, _in_insert_then_dawdle])
async def test_a_dead_wire_holds_a_call_no_longer_than_its_deadline(
    loop: None, dsn: str, work: Callable[[Connection], Awaitable[None]]
) -> None:
    """Nothing comes through and nothing is closed: the call ends, and the next works when the wire does."""
    async with (
        open_wire(dsn) as wire,
        open_database(wire.dsn, pool_size=2, call_seconds=5, statement_seconds=5, listen=True) as database,
    ):
        await ask(database, "CREATE TABLE kept (n integer)")

        async def _in_freeze(connection: Connection) -> None:
            timer = asyncio.get_running_loop().call_later(0.1, wire.freeze)
            try:
                await work(connection)
            finally:
                timer.cancel()

        started = trio.current_time()
        with pytest.raises(DatabaseUnavailable):
            await database.transact_within(0.4, _in_freeze)
        assert trio.current_time() - started < 4
        wire.thaw()
        assert await ask(database, "SELECT n FROM kept") == []


async def test_a_program_that_vanishes_in_mid_transaction_keeps_nothing_locked(
    loop: None, dsn: str, database: Database
) -> None:
    """Its machine lost its power: no word of its end arrives, and the server lets the row go by itself."""
    await ask(database, "CREATE TABLE kept (n integer)")
    await ask(database, "INSERT INTO kept VALUES (1)")
    async with (
        open_wire(dsn) as wire,
        open_database(wire.dsn, pool_size=1, call_seconds=1, statement_seconds=1, listen=True) as far,
    ):

        async def _in_vanish(connection: Connection) -> None:
            async with connection.transaction():
                await connection.execute("UPDATE kept SET n = 2")
                wire.fail_at(Fault(Failing.SWALLOW, Towards.SERVER, 0), late_seconds=60)

        with pytest.raises(DatabaseUnavailable):
            await far.transact(_in_vanish)
        with trio.fail_after(3):
            await ask(database, "UPDATE kept SET n = 3")
    assert await ask(database, "SELECT n FROM kept") == [{"n": 3}]


async def test_a_program_that_stood_still_in_a_transaction_may_go_on(dsn: str, database: Database) -> None:
    """Suspended and woken, it finds its session ended by the server: the outcome is unknown, no worse."""
    async with open_database(
        dsn, pool_size=1, call_seconds=1.5, statement_seconds=1.5, listen=True
    ) as suspended:

        async def _in_stand_still(connection: Connection) -> None:
            async with connection.transaction():
                await connection.execute("CREATE TABLE kept (n integer)")
                await asyncio.sleep(2.5)
                await connection.execute("INSERT INTO kept VALUES (1)")

        with pytest.raises(DatabaseUnavailable, match="idle-in-transaction"):
            await suspended.transact_within(15, _in_stand_still)
    assert await ask(database, "SELECT 1 AS n WHERE to_regclass('kept') IS NULL") == [{"n": 1}]


async def test_the_server_finds_a_vanished_machine_within_half_a_minute(database: Database) -> None:
    """Its own keepalives are asked for: by themselves they would begin after two hours."""
    kept = await ask(
        database,
        "SELECT name, reset_val FROM pg_settings WHERE name LIKE 'tcp_keepalives%' AND source = 'client'",
    )
    seconds = {row["name"].removeprefix("tcp_keepalives_"): int(row["reset_val"]) for row in kept}
    assert seconds["idle"] + seconds["interval"] * seconds["count"] <= 30


async def test_waiting_for_a_connection_is_part_of_the_deadline(single: Database) -> None:
    """With every connection in use a call ends in time, and takes none with it."""
    async with trio.open_nursery() as nursery:

        async def occupy() -> None:
            with trio.move_on_after(0.8):
                await single.transact(_in_sleep)

        nursery.start_soon(occupy)
        await trio.sleep(0.1)
        started = trio.current_time()
        with pytest.raises(DatabaseUnavailable):
            await single.transact_within(0.3, _in_sleep)
        assert trio.current_time() - started < 0.7
    await nothing_is_left(single)


async def test_a_cancel_while_a_connection_is_returned_loses_it_for_nobody(single: Database) -> None:
    """The pool's own lock is busy at that moment; the next call has the connection all the same."""
    holders: list[asyncio.Task[None]] = []

    async def _in_keep_the_pool_busy(connection: Connection) -> None:
        lock = single._pool._lock  # noqa: SLF001 - what every return of a connection has to pass

        async def hold() -> None:
            async with lock:
                await asyncio.sleep(0.4)

        await connection.execute("SELECT 1")
        holders.append(asyncio.create_task(hold()))
        await asyncio.sleep(0)

    with trio.move_on_after(0.2) as scope:
        await single.transact(_in_keep_the_pool_busy)
    assert scope.cancelled_caught
    await nothing_is_left(single)
    assert all(holder.done() for holder in holders)


async def test_many_calls_share_few_connections(loop: None, dsn: str) -> None:
    """Fifty at once over three connections all come through, also with some of them cancelled."""
    async with open_database(
        dsn, pool_size=3, call_seconds=20, statement_seconds=10, listen=True
    ) as database:
        done: list[int] = []

        async def call(n: int) -> None:
            with trio.move_on_after(0.005 if n % 5 == 0 else 20):
                await ask(database, "SELECT pg_sleep(0.01)")
                done.append(n)

        async with trio.open_nursery() as nursery:
            for n in range(50):
                nursery.start_soon(call, n)
        assert {n for n in range(50) if n % 5} <= set(done)
        rows = await ask(
            database,
            """SELECT count(*) AS sessions FROM pg_stat_activity
                WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()""",
        )
        assert rows == [{"sessions": 0}]


async def test_connections_the_server_ended_are_replaced(single: Database, dsn: str) -> None:
    """The call that meets a dead connection says so; the one after it has a new one."""
    with psycopg.connect(dsn, autocommit=True) as elsewhere:
        elsewhere.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()"""
        )
    with pytest.raises(DatabaseUnavailable):
        await ask(single, "SELECT 1 AS one")
    assert await ask(single, "SELECT 1 AS one") == [{"one": 1}]


FAULTS: tuple[tuple[LiteralString, type[Exception]], ...] = (
    ("SELECT 1 / 0", DataRefused),
    ("SELECT 'x'::integer", DataRefused),
    ("INSERT INTO kept VALUES (NULL)", DataRefused),
    ("SELECT '\"a\\u0000b\"'::jsonb ->> 0", DataRefused),
    ("SET TRANSACTION READ ONLY; CREATE TABLE more ()", DatabaseUnavailable),
    ("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(5)", DatabaseUnavailable),
    ("SELECT pg_terminate_backend(pg_backend_pid())", DatabaseUnavailable),
    ("SELECT * FROM absent", psycopg.errors.UndefinedTable),
    ("SELEC 1", psycopg.errors.SyntaxError),
    ("SELECT %(nothing)s", psycopg.errors.SyntaxError),
)


async def test_an_error_is_blamed_on_the_world_the_value_or_ourselves(single: Database) -> None:
    """The world's may pass, a value is refused for good, and a fault of ours is left as it is."""
    await ask(single, "ALTER TABLE kept ALTER n SET NOT NULL")

    async def _in_fault(connection: Connection, statement: LiteralString) -> None:
        await connection.execute(statement)

    for statement, blamed in FAULTS:
        with pytest.raises(blamed) as raised:
            await single.transact(_in_fault, statement)
        assert type(raised.value) is blamed, statement
        assert str(raised.value).count("\n") == 0 or blamed.__module__.startswith("psycopg"), statement
    await nothing_is_left(single)


async def test_two_calls_that_wait_for_each_other_are_the_worlds_fault(database: Database) -> None:
    """Of a deadlock one side is ended by the server, and may be tried again."""
    await ask(database, "CREATE TABLE pair AS SELECT n FROM generate_series(1, 2) AS n")
    ends: list[str] = []

    async def _in_cross(connection: Connection, first: int, second: int) -> None:
        async with connection.transaction():
            await connection.execute("SET LOCAL deadlock_timeout = '50ms'")
            await connection.execute("SELECT 1 FROM pair WHERE n = %s FOR UPDATE", [first])
            await asyncio.sleep(0.2)
            await connection.execute("SELECT 1 FROM pair WHERE n = %s FOR UPDATE", [second])

    async def cross(first: int, second: int) -> None:
        try:
            await database.transact(_in_cross, first, second)
            ends.append("done")
        except DatabaseUnavailable as error:
            ends.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cross, 1, 2)
        nursery.start_soon(cross, 2, 1)
    assert sorted(ends) == ["done", "the database cannot serve just now (deadlock detected)"]


@pytest.mark.parametrize(
    ("dsn", "error", "sentence"),
    [
        ("what is this", DatabaseRefused, "database.dsn is not a PostgreSQL connection string"),
        ("host=x nosuch=1", DatabaseRefused, "database.dsn is not a PostgreSQL connection string"),
        (
            NOBODY_THERE,
            DatabaseUnavailable,
            r"PostgreSQL at /nowhere/at/all, rubezh, cannot be reached \(.*\)",
        ),
        (
            "postgresql://127.0.0.1:9/rubezh",
            DatabaseUnavailable,
            r"PostgreSQL at 127\.0\.0\.1, rubezh, cannot",
        ),
    ],
)
async def test_a_dsn_that_leads_nowhere_is_told_in_a_sentence(
    loop: None, dsn: str, error: type[Exception], sentence: str
) -> None:
    """One line, with the place and the cause, and what to do where nobody answers; soon, and not for ever."""
    with trio.fail_after(5), pytest.raises(error, match=sentence) as raised:
        async with open_database(dsn, pool_size=1, call_seconds=2, statement_seconds=1, listen=True):
            pytest.fail("it opened")
    assert "\n" not in str(raised.value)
    if error is DatabaseUnavailable:
        assert str(raised.value).endswith("; start it or set database.dsn")


async def test_a_database_that_is_not_there_is_told_by_name(loop: None, dsn: str) -> None:
    """The server's own words are in the sentence."""
    other = psycopg.conninfo.make_conninfo(dsn, dbname="no_such_database")
    with trio.fail_after(5), pytest.raises(DatabaseUnavailable, match='"no_such_database" does not exist'):
        async with open_database(other, pool_size=1, call_seconds=2, statement_seconds=1, listen=True):
            pytest.fail("it opened")


async def test_a_server_that_says_nothing_is_left_after_the_deadline(loop: None) -> None:
    """A port that takes connections and never answers does not hold the start up."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        port = listener.socket.getsockname()[1]
        silent = f"host=127.0.0.1 port={port} dbname=rubezh connect_timeout=2"
        with trio.fail_after(9), pytest.raises(DatabaseUnavailable, match=r"127\.0\.0\.1, rubezh, cannot be"):
            async with open_database(silent, pool_size=1, call_seconds=1, statement_seconds=1, listen=True):
                pytest.fail("it opened")


async def test_a_password_is_not_repeated(loop: None) -> None:
    """The sentence goes into the log; what opens the database does not."""
    with pytest.raises(DatabaseUnavailable) as raised:
        async with open_database(
            "postgresql://u:hunter2@127.0.0.1:9/rubezh",
            pool_size=1,
            call_seconds=2,
            statement_seconds=1,
            listen=True,
        ):
            pytest.fail("it opened")
    assert "hunter2" not in str(raised.value)
    with pytest.raises(DatabaseRefused) as refused:
        async with open_database(
            "host=x password=hunter2 nosuch=1", pool_size=1, call_seconds=2, statement_seconds=1, listen=True
        ):
            pytest.fail("it opened")
    assert "hunter2" not in str(refused.value)


async def test_an_old_server_is_refused_with_its_version(
    loop: None, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is older than we need is named, and so is what we need."""
    monkeypatch.setattr(under_test, "OLDEST_SERVER", 990_000)
    with pytest.raises(DatabaseRefused, match="the server is PostgreSQL 17; Rubezh needs 14 or newer"):
        async with open_database(dsn, pool_size=1, call_seconds=5, statement_seconds=1, listen=True):
            pytest.fail("it opened")


async def test_nothing_is_left_after_closing(loop: None, dsn: str) -> None:
    """On a good way out and on a bad one the sessions are gone, though calls were under way."""
    name = f"rubezh-{uuid4().hex[:8]}"
    ours = psycopg.conninfo.make_conninfo(dsn, application_name=name)

    async def leave_badly() -> None:
        async with (
            open_database(ours, pool_size=4, call_seconds=20, statement_seconds=20, listen=True) as database,
            trio.open_nursery() as nursery,
        ):
            for _ in range(3):
                nursery.start_soon(database.transact, _in_sleep)
            await trio.sleep(0.2)
            message = "a bad way out"
            raise RuntimeError(message)

    with trio.fail_after(5), pytest.raises(ExceptionGroup, match="nursery"):
        await leave_badly()
    async with open_database(ours, pool_size=4, call_seconds=5, statement_seconds=5, listen=True) as database:
        await ask(database, "SELECT 1 AS one")
    async with open_database(dsn, pool_size=1, call_seconds=5, statement_seconds=5, listen=True) as looking:
        await none_is_left(looking, "SELECT 1 FROM pg_stat_activity WHERE application_name = %s", name)


async def test_the_defaults_of_a_server_do_not_change_ours(loop: None, dsn: str) -> None:
    """The claim stands on "read committed" and times are UTC, whatever the server was set to by others."""
    name = psycopg.sql.Identifier(str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]))
    with psycopg.connect(dsn, autocommit=True) as setting:
        for given in ("timezone = 'Asia/Tokyo'", "default_transaction_isolation = 'serializable'"):
            setting.execute(psycopg.sql.SQL("ALTER DATABASE {} SET {}").format(name, psycopg.sql.SQL(given)))
    options = psycopg.conninfo.make_conninfo(dsn, options="-c work_mem=5MB")
    for listen in (True, False):
        async with open_database(
            options, pool_size=1, call_seconds=5, statement_seconds=5, listen=listen
        ) as database:
            assert await ask(database, "SHOW timezone") == [{"TimeZone": "UTC"}]
            assert await ask(database, "SHOW transaction_isolation") == [
                {"transaction_isolation": "read committed"}
            ]
            assert await ask(database, "SHOW work_mem") == [{"work_mem": "5MB"}]


async def test_without_listening_no_session_keeps_anything(loop: None, dsn: str) -> None:
    """A pooler hands each transaction another session: no statement is prepared for the next one."""

    async def _in_count(connection: Connection) -> list[str]:
        for _ in range(10):
            await connection.execute("SELECT n FROM generate_series(1, %s) AS n", [3])
        cursor = await connection.execute("SELECT statement FROM pg_prepared_statements")
        return [row[0] for row in await cursor.fetchall()]

    for listen in (True, False):
        async with open_database(
            dsn, pool_size=1, call_seconds=5, statement_seconds=5, listen=listen
        ) as database:
            assert bool(await database.transact(_in_count)) is listen


async def test_what_is_notified_is_heard_until_the_server_goes(database: Database) -> None:
    """Each payload arrives; the end of the session ends the hearing as a database that is away."""
    heard, hearing = trio.open_memory_channel[str](10)
    async with trio.open_nursery() as nursery:
        started = trio.Event()

        async def hear() -> None:
            with pytest.raises(DatabaseUnavailable):
                await database.hear("rubezh_ready", heard.send_nowait, started.set)

        nursery.start_soon(hear)
        with trio.fail_after(5):
            await started.wait()
            await ask(database, "SELECT pg_notify('rubezh_ready', 'convert'), pg_notify('other', 'no')")
            await ask(database, "SELECT pg_notify('rubezh_ready', 'whisper')")
            assert [await hearing.receive(), await hearing.receive()] == ["convert", "whisper"]
            await ask(
                database,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
            )


async def test_a_server_that_says_nothing_any_more_is_not_listened_to_for_ever(
    dsn: str, loop: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again and again; once it is frozen, the hearing ends as with a database that is away."""
    monkeypatch.setattr("storage.database.HEAR_AGAIN_SECONDS", 0.1)
    said = 0

    def count() -> None:
        nonlocal said
        said += 1

    async with open_database(dsn, pool_size=2, call_seconds=2, statement_seconds=1, listen=True) as database:

        async def hear() -> None:
            with pytest.raises(DatabaseUnavailable, match="did not answer within 2 s"):
                await database.hear("rubezh_ready", print, count)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hear)
            await until(lambda: said > 3)
            found = (
                "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"
            )
            (server,) = await ask(database, found)
            os.kill(server["pid"], signal.SIGSTOP)
            try:
                with trio.fail_after(30):
                    await until(lambda: not [task for task in nursery.child_tasks if "hear" in task.name], 30)
            finally:
                os.kill(server["pid"], signal.SIGCONT)


async def test_a_frozen_server_is_told_by_the_call_s_error_alone(
    dsn: str, loop: None, caplog: pytest.LogCaptureFixture
) -> None:
    """What the driver would say of each call it could not take back is no news to whoever made the call."""
    async with open_database(dsn, pool_size=1, call_seconds=1, statement_seconds=1, listen=False) as database:
        (server,) = await ask(database, "SELECT pg_backend_pid() AS pid")
        os.kill(server["pid"], signal.SIGSTOP)
        try:
            with pytest.raises(DatabaseUnavailable, match="within 1 s"):
                await ask(database, "SELECT 1")
        finally:
            os.kill(server["pid"], signal.SIGCONT)
    assert caplog.records == []


async def test_hearing_ends_with_its_cancel(database: Database) -> None:
    """No session listens on after the one who heard has gone."""
    started = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(database.hear, "rubezh_ready", print, started.set)
        with trio.fail_after(5):
            await started.wait()
        nursery.cancel_scope.cancel()
    await none_is_left(database, "SELECT 1 FROM pg_stat_activity WHERE query LIKE %s", "LISTEN%")


def test_it_does_not_matter_who_imported_psycopg_first(dsn: str) -> None:
    """A program that imported the driver before us reaches the database all the same."""
    program = """
import psycopg
import sys, trio
from storage.database import open_database, open_loop
async def main():
    async with open_loop(), open_database(
        sys.argv[1], pool_size=1, call_seconds=5, statement_seconds=5, listen=True
    ):
        print("reached")
trio.run(main)
"""
    answer = subprocess.run(
        [sys.executable, "-c", program, dsn],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (answer.stdout, answer.stderr) == ("reached\n", "")


async def test_what_found_no_connection_was_never_sent(database: Database, loop: None, dsn: str) -> None:
    """Told apart from a lost answer, for which a write may have been made."""
    async with open_database(dsn, pool_size=1, call_seconds=5, statement_seconds=5, listen=True) as single:

        async def _in_hold(connection: Connection) -> None:
            del connection
            held.set()
            await asyncio.sleep(1.5)

        held = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(single.transact, _in_hold)
            await held.wait()
            with pytest.raises(DatabaseUnreached):
                await single.transact_within(0.3, _in_hold)
        with pytest.raises(DatabaseUnavailable) as lost:
            await single.transact_within(0.3, _in_hold)
        assert not isinstance(lost.value, DatabaseUnreached)

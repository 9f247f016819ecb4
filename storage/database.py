"""The one crossing from Trio to PostgreSQL.

Every function with SQL is asyncio-flavoured, small, and named `_in_<verb>`; every public one is
Trio-flavoured and calls `transact` once. A transaction that begins and ends inside one asyncio-flavoured
function sends its ROLLBACK under cancellation; a context manager held across the border does not.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

import trio_asyncio
from trio_asyncio import aio_as_trio

import psycopg
import psycopg.waiting
import trio
from attrs import evolve, field, frozen
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from storage.dsn import away_from, whole_dsn
from storage.errors import DatabaseRefused, DatabaseUnavailable, DatabaseUnreached, DataRefused

__all__ = ["Connection", "Database", "open_database", "open_loop"]

open_loop = trio_asyncio.open_loop

# trio_asyncio replaces asyncio's function, and psycopg took it by name when it was imported: whoever
# imported psycopg earlier than us got the one that knows nothing of Trio.
psycopg.waiting.get_running_loop = asyncio.get_running_loop  # type: ignore[attr-defined]  # not exported

# The pool warns of each attempt to connect, the driver of each call that a frozen server does not let go of;
# whoever asks us for a connection or an answer is told, and tells it once.
logging.getLogger("psycopg").setLevel(logging.ERROR)

Connection = AsyncConnection[TupleRow]
CallEnded = Callable[[str, float], None]
"""Is told how a call ended, one of `CALL_ENDS`, and after how many seconds."""

CALL_ENDS = ("answered", "refused", "away")

P = ParamSpec("P")
T = TypeVar("T")

OLDEST_SERVER = 140_000
HEAR_AGAIN_SECONDS = 30.0
_PATIENCE = 1.0  # seconds between a cancel and the next
# SQLSTATE classes that speak of the world and not of our statement: connection, resources, operator
# intervention, system error, lock not available, serialisation.
_WORLD = ("08", "53", "57", "58", "55", "40")
_READ_ONLY, _STOOD_STILL = "25006", "25P03"


@frozen(kw_only=True)
class Database:
    """An open pool of connections, each in autocommit: one statement needs no transaction around it."""

    dsn: str
    call_seconds: float
    listens: bool
    _pool: AsyncConnectionPool[Connection]
    _call_ended: CallEnded = field(default=lambda _end, _seconds: None, eq=False, repr=False)

    async def transact(
        self,
        work: Callable[Concatenate[Connection, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run asyncio-flavoured `work` on one connection, within the deadline of one call.

        Raises DatabaseUnavailable when PostgreSQL is away or too slow (whether a write was committed is then
        unknown), DatabaseUnreached when it was never asked, and DataRefused when a value was refused for what
        it is.
        """
        return await self.transact_within(self.call_seconds, work, *args, **kwargs)

    async def transact_within(
        self,
        seconds: float,
        work: Callable[Concatenate[Connection, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Do as `transact` does, with a deadline of its own."""
        began, end = trio.current_time(), ""
        try:
            result = await self._transacted(seconds, work, *args, **kwargs)
            end = "answered"
        except DataRefused:
            end = "refused"
            raise
        except DatabaseUnavailable:
            end = "away"
            raise
        finally:
            if end:  # one that was cancelled has no end to tell
                self._call_ended(end, trio.current_time() - began)
        return result

    async def _transacted(
        self,
        seconds: float,
        work: Callable[Concatenate[Connection, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        asked = False

        async def inside() -> T:
            nonlocal asked
            with _insisting(seconds):
                async with _lent(self._pool, seconds) as connection:
                    asked = True
                    return await work(connection, *args, **kwargs)

        try:
            with trio.fail_after(seconds):
                result: T = await aio_as_trio(inside)()
        except trio.TooSlowError as error:
            if not asked:
                message = f"the database cannot be reached (no connection within {seconds:g} s)"
                raise DatabaseUnreached(message) from error
            message = f"the database did not answer within {seconds:g} s"
            raise DatabaseUnavailable(message) from error
        except (psycopg.Error, PoolTimeout, UnicodeEncodeError) as error:
            raise _of_ours(error) from error
        return result

    async def hear(self, channel: str, heard: Callable[[str], None], listens: Callable[[], None]) -> None:
        """LISTEN on a connection of its own; call `heard(payload)` for each notification until cancelled.

        `listens()` is called when the server has said yes, and says so again, every `HEAR_AGAIN_SECONDS`: a
        server that has gone without a word sends no notifications either. Raises DatabaseUnavailable when it
        ends.
        """
        silence = trio.CancelScope(deadline=trio.current_time() + self.call_seconds)

        async def inside() -> None:
            conninfo = str(self._pool.conninfo)
            async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
                while True:
                    # To listen again changes nothing, and is answered.
                    name = psycopg.sql.Identifier(channel)
                    await connection.execute(psycopg.sql.SQL("LISTEN {}").format(name))
                    silence.deadline = trio.current_time() + HEAR_AGAIN_SECONDS + self.call_seconds
                    listens()
                    async for notification in connection.notifies(timeout=HEAR_AGAIN_SECONDS):
                        heard(notification.payload)

        try:
            with silence:
                await aio_as_trio(inside)()
        except psycopg.Error as error:
            raise _of_ours(error) from error
        raise DatabaseUnavailable(f"the database did not answer within {self.call_seconds:g} s")


@asynccontextmanager
async def _lent(pool: AsyncConnectionPool[Connection], seconds: float) -> AsyncIterator[Connection]:
    """Have a connection of the pool for the block, as `pool.connection` does, but for its return.

    A return that is cancelled half-way loses the connection for good, and whoever was to have it next waits
    in vain; so it is made by a task of its own, which no cancel of ours reaches.
    """
    connection = await pool.getconn(timeout=seconds)
    try:
        async with connection:
            yield connection
    finally:
        await asyncio.shield(pool.putconn(connection))  # noqa: ASYNC102 - the wait is `_insisting`'s to bound


@contextmanager
def _insisting(seconds: float) -> Iterator[None]:
    """Cancel the asyncio task around the block again and again once its time, and a second more, is over.

    After one cancel psycopg asks the server to let go, and waits ten seconds for a dead one; after the next
    it closes the connection.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    timers: list[asyncio.TimerHandle] = []

    def insist(after: float) -> None:
        if task is not None and timers:
            task.cancel()
        timers[:] = [loop.call_later(after, insist, _PATIENCE)]

    insist(seconds + _PATIENCE)
    try:
        yield
    finally:
        timers[0].cancel()


@asynccontextmanager
async def open_database(
    dsn: str,
    *,
    pool_size: int,
    call_seconds: float,
    statement_seconds: float,
    listen: bool,
    call_ended: CallEnded | None = None,
) -> AsyncIterator[Database]:
    """Open the pool inside a running `open_loop()`; close it, bounded, on any way out.

    `call_ended` is told of every call that has an end.

    Raises DatabaseUnavailable when nobody answers, DatabaseRefused when the DSN makes no sense or the server
    is older than PostgreSQL 14.
    """
    pool = AsyncConnectionPool[Connection](
        whole_dsn(dsn, statement_seconds, call_seconds),
        min_size=1,
        max_size=pool_size,
        open=False,
        kwargs=_connection_arguments(listen=listen),
        timeout=call_seconds,
        reconnect_timeout=call_seconds,
        check=AsyncConnectionPool.check_connection if not listen else None,
    )
    database = Database(dsn=dsn, call_seconds=call_seconds, listens=listen, pool=pool)
    if call_ended is not None:
        database = evolve(database, call_ended=call_ended)
    try:
        try:
            with trio.fail_after(call_seconds + 5):
                await aio_as_trio(_in_open)(pool, call_seconds)
        except trio.TooSlowError as error:
            raise DatabaseUnavailable(away_from(dsn, "no answer")) from error
        except (psycopg.Error, PoolTimeout) as error:
            raise DatabaseUnavailable(away_from(dsn, str(error))) from error
        await database.transact(_in_check_server)
        yield database
    finally:
        with trio.move_on_after(3, shield=True):
            await aio_as_trio(pool.close)(2)


async def _in_open(pool: AsyncConnectionPool[Connection], seconds: float) -> None:
    # The pool keeps the cause of a failed connection to itself, so the first one is made by hand.
    async with await psycopg.AsyncConnection.connect(str(pool.conninfo)):
        pass
    await pool.open(wait=True, timeout=seconds)


async def _in_check_server(connection: Connection) -> None:
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        message = f"the server is PostgreSQL {version // 10_000}; Rubezh needs 14 or newer"
        raise DatabaseRefused(message)


def _connection_arguments(*, listen: bool) -> dict[str, Any]:
    # A transaction-mode pooler hands each transaction another server session, so nothing may be left in one.
    return {"autocommit": True} | ({} if listen else {"prepare_threshold": None})


def _of_ours(error: Exception) -> Exception:
    """Say whose fault a driver's error is: the world's, the value's, or (unchanged) our own."""
    state = getattr(error, "sqlstate", None) or ""
    # The server's details hold the row it refused, and with it what was said in a recording.
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    cause = " ".join((primary or str(error)).split()) or type(error).__name__
    if state[:2] in ("22", "23"):
        return DataRefused(f"the database refused a value ({cause})")
    if isinstance(error, psycopg.DataError | UnicodeEncodeError):  # never sent: NUL, or half a surrogate
        return DataRefused(f"the database driver refused a value ({cause})")
    if state[:2] in _WORLD or state in (_READ_ONLY, _STOOD_STILL):
        return DatabaseUnavailable(f"the database cannot serve just now ({cause})")
    if isinstance(error, PoolTimeout):
        return DatabaseUnreached(f"the database cannot be reached ({cause})")
    if not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return DatabaseUnavailable(f"the database is away ({cause})")
    return error

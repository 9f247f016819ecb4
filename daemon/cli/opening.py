"""How a command comes to a database: the one that was set, the running service's, or one for itself."""

import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import TypeVar

import trio

from daemon.settings import Settings
from storage.database import Database, open_database, open_loop
from storage.embedded import embedded_postgres, running_dsn
from storage.errors import StateFolderInUse
from storage.folder import StateFolder
from storage.migrate import migrate

T = TypeVar("T")

_POOL = 2  # a command asks one thing at a time
_OWNER_PATIENCE = 60.0  # seconds for another process to finish its start, or its end
_GUESTS_PATIENCE = 10.0
_OWNER_LOOK = 0.05


def with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Run one command's work on an open, migrated database."""
    return trio.run(_with_database, settings, work)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Database]:
    """Open the database a command works on, and bring its schema up to date.

    While another process owns the state folder its cluster is used; otherwise one runs as long as the block.
    """
    async with open_loop(), AsyncExitStack() as stack:
        dsn = settings.database.dsn or await _cluster(StateFolder(settings.state), stack)
        yield await stack.enter_async_context(database_at(dsn, settings))


@asynccontextmanager
async def database_at(dsn: str, settings: Settings) -> AsyncIterator[Database]:
    """Open and migrate the database at `dsn` for a command, inside a running `open_loop()`."""
    asked = settings.database
    async with open_database(
        dsn,
        pool_size=_POOL,
        call_seconds=asked.call_seconds,
        statement_seconds=asked.statement_seconds,
        listen=asked.listen,
    ) as database:
        await migrate(database)
        yield database


async def _cluster(folder: StateFolder, stack: AsyncExitStack) -> str:
    """Own the folder and run its cluster, or be a guest of whoever does."""
    folder.prepare()
    with trio.move_on_after(_OWNER_PATIENCE):
        while True:
            try:
                stack.enter_context(folder.locked())
            except StateFolderInUse as refusal:
                in_use = refusal
            else:
                guests = stack.enter_context(_guests(folder))
                cluster = await stack.enter_async_context(embedded_postgres(folder))
                stack.push_async_callback(_see_off, guests)
                return cluster.dsn
            if dsn := await _as_guest(folder, stack):
                return dsn
            await trio.sleep(_OWNER_LOOK)
    raise in_use


async def _as_guest(folder: StateFolder, stack: AsyncExitStack) -> str | None:
    """Return the running cluster's address, holding its owner back; None when there is none."""
    with ExitStack() as visit:
        guests = visit.enter_context(_guests(folder))
        if not _locked(guests, fcntl.LOCK_SH):
            return None  # the owner is about to end it
        dsn = await running_dsn(folder)
        if dsn is not None:
            stack.push(visit.pop_all())
        return dsn


async def _see_off(guests: int) -> None:
    """Wait for the commands that use our cluster, and let no other in until it has ended."""
    with trio.move_on_after(_GUESTS_PATIENCE):
        while not _locked(guests, fcntl.LOCK_EX):  # noqa: ASYNC110 - other processes set no event of ours
            await trio.sleep(_OWNER_LOOK)


@contextmanager
def _guests(folder: StateFolder) -> Iterator[int]:
    descriptor = os.open(folder.path / "guests", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    async with opened(settings) as database:
        return await work(database)

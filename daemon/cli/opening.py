"""How a command comes to a database: the one that was set, the running service's, or one for itself."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import trio

from daemon.settings import Settings
from storage.database import Database, open_database, open_loop
from storage.embedded import embedded_postgres, running_dsn
from storage.errors import StateFolderRefused
from storage.folder import StateFolder
from storage.migrate import migrate

T = TypeVar("T")

_POOL = 2  # a command asks one thing at a time
_OWNER_PATIENCE = 60.0  # seconds for another process to finish its start, or its end
_OWNER_LOOK = 0.1


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
    folder.prepare()
    with trio.move_on_after(_OWNER_PATIENCE):
        while True:
            try:
                stack.enter_context(folder.locked())
            except StateFolderRefused as refusal:
                in_use = refusal
            else:
                return (await stack.enter_async_context(embedded_postgres(folder))).dsn
            if dsn := await running_dsn(folder):
                return dsn
            await trio.sleep(_OWNER_LOOK)
    raise in_use


async def _with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    async with opened(settings) as database:
        return await work(database)

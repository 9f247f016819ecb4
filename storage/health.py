"""A check-up of the database that changes nothing: no schema is made or brought up to date by it."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import psycopg
import trio
from attrs import frozen
from psycopg.rows import class_row

from storage.database import Connection, Database
from storage.errors import DatabaseRefused
from storage.migrate import migrations
from storage.mounting import read_identity
from storage.sql import query

T = TypeVar("T")

SECONDS = 5.0


@frozen(kw_only=True)
class Server:
    """What a server says of itself."""

    version: str
    now: datetime
    takes_writes: bool


@frozen(kw_only=True)
class Schema:
    """How far the schema is, and how far this program can bring it; `reached` is None where there is none."""

    reached: int | None
    known: int


@frozen(kw_only=True)
class StoreState:
    """What is known of a folder of audio; `store` is its id, None where it has no file of ours."""

    store: UUID | None
    is_of_this_installation: bool
    is_known: bool


async def read_server(database: Database) -> Server:
    """Ask the server for its version, its clock, and whether it takes writes."""
    return await _ask(database, _in_server)


async def read_schema(database: Database) -> Schema:
    """Tell how far the schema is."""
    reached = await _ask(database, _in_schema)
    return Schema(reached=reached, known=len(migrations()))


async def read_store(database: Database, root: Path) -> StoreState:
    """Compare a store's own file with what the database knows; needs a schema, and changes neither.

    Raises StateFolderRefused for a folder that is no store of ours.
    """
    identity = await trio.to_thread.run_sync(read_identity, root)
    if identity is None:
        return StoreState(store=None, is_of_this_installation=False, is_known=False)
    ours, is_known = await _ask(database, partial(_in_store, store=identity.store))
    return StoreState(
        store=identity.store, is_of_this_installation=ours == identity.installation, is_known=is_known
    )


async def _ask(database: Database, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Ask within the check-up's time; a role without the rights to ask is a finding and no fault of ours."""
    try:
        return await database.transact_within(SECONDS, work)
    except psycopg.Error as error:
        cause = " ".join(str(error).split())
        raise DatabaseRefused(
            f"the database does not let this role ask ({cause}); make it the owner of the database"
        ) from error


async def _in_server(connection: Connection) -> Server:
    cursor = connection.cursor(row_factory=class_row(Server))
    row = await (await cursor.execute(query("health"))).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    return row


async def _in_schema(connection: Connection) -> int | None:
    there = await (await connection.execute(query("schema_there"))).fetchone()
    if there is None or not there[0]:
        return None
    row = await (await connection.execute(query("migration_reached"))).fetchone()
    return None if row is None else int(row[0])


async def _in_store(connection: Connection, store: UUID) -> tuple[UUID | None, bool]:
    ours = await (await connection.execute(query("installation_read"))).fetchone()
    known = await (await connection.execute(query("store_known"), {"id": store})).fetchone()
    return None if ours is None else ours[0], known is not None

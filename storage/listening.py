"""Listening copies and peaks: derived of what was decoded, made beside the queue, one making at a time.

A making is held by a lease and published under its token, as an attempt's work is. Nothing here writes a
column of the queue: a making that fails, hangs or takes the process down costs its record nothing.
"""

from typing import LiteralString
from uuid import UUID, uuid4

from attrs import frozen
from psycopg.rows import class_row

from storage.audio import Store
from storage.database import Connection, Database
from storage.sql import query

LEASE_SECONDS = 60.0  # after a crash the making is free that much later


@frozen(kw_only=True)
class Making:
    """A listening copy in the making, for the `tries`-th time; the paths are relative to the store's root."""

    record_id: UUID
    token: UUID
    tries: int
    source_path: str
    audio_path: str
    track: int | None
    decoded_seconds: float | None
    audio_warnings: list[str]


@frozen(kw_only=True)
class Listening:
    """What there is to listen to: all None while it is wanted, `failed_because` where it was given up."""

    path: str | None
    media: str | None
    peaks: bytes | None
    failed_because: str | None


NOT_WANTED = Listening(path=None, media=None, peaks=None, failed_because=None)
"""Of a record that is not decoded yet."""


async def take_making(database: Database, store: Store) -> Making | None:
    """Take the next making that is due in this store for LEASE_SECONDS; None when there is none."""
    return await database.transact(_in_take, store.id)


async def hold_making(database: Database, making: Making) -> bool:
    """Hold a making on for LEASE_SECONDS from now; False when it is not ours any more."""
    asked = _key(making) | {"lease_seconds": LEASE_SECONDS}
    return await database.transact(_in_found, query("listening_held"), asked)


async def publish_made(database: Database, making: Making, path: str, media: str, peaks: bytes) -> bool:
    """Name what was made, durable by now; False when the making is not ours any more."""
    made = _key(making) | {"path": path, "media": media, "peaks": peaks}
    return await database.transact(_in_found, query("listening_made"), made)


async def put_off_making(database: Database, making: Making, delay: float, *, counts: bool) -> bool:
    """Have a making begun again after `delay` seconds; one that does not count is as if never begun."""
    ended = _key(making) | {"delay": delay, "counts": counts, "failed_because": None}
    return await database.transact(_in_found, query("listening_ended"), ended)


async def give_up_making(database: Database, making: Making, cause: str) -> bool:
    """Have a making not begun again."""
    ended = _key(making) | {"delay": 0.0, "counts": True, "failed_because": cause}
    return await database.transact(_in_found, query("listening_ended"), ended)


async def read_listening(database: Database, record_id: UUID) -> Listening:
    """Return what there is to listen to of a record."""
    return await database.transact(_in_read, record_id)


async def make_again(database: Database, record_id: UUID, path: str) -> None:
    """Have a listening copy made again that its store has lost."""
    await database.transact(_in_lose, record_id, path)


def _key(making: Making) -> dict[str, object]:
    return {"record_id": making.record_id, "token": making.token}


async def _in_take(connection: Connection, store_id: UUID) -> Making | None:
    asked = {"store_id": store_id, "token": uuid4(), "lease_seconds": LEASE_SECONDS}
    async with connection.cursor(row_factory=class_row(Making)) as cursor:
        await cursor.execute(query("listening_taken"), asked)
        return await cursor.fetchone()


async def _in_found(connection: Connection, statement: LiteralString, asked: dict[str, object]) -> bool:
    return await (await connection.execute(statement, asked)).fetchone() is not None


async def _in_read(connection: Connection, record_id: UUID) -> Listening:
    async with connection.cursor(row_factory=class_row(Listening)) as cursor:
        await cursor.execute(query("listening_read"), {"record_id": record_id})
        return await cursor.fetchone() or NOT_WANTED


async def _in_lose(connection: Connection, record_id: UUID, path: str) -> None:
    await connection.execute(query("listening_lost"), {"record_id": record_id, "path": path})

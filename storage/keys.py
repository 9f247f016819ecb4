"""Idempotency keys: a submission sent again under its key is done once, and answered alike each time.

A key is held by a lease while its submission is received and becomes used in the transaction that makes the
record, guarded by its holder; so a holder that came too late makes no second record.
"""

from typing import Any
from uuid import UUID, uuid4

from attrs import frozen
from psycopg.rows import dict_row
from psycopg.types.json import Json

from storage.database import Connection, Database
from storage.errors import Unavailable
from storage.sql import query

LEASE_SECONDS = 45.0  # after a crash the key is free that much later
KEPT_SECONDS = 7 * 86_400.0


@frozen
class HeldKey:
    """A key in the hands of one submission."""

    account_id: UUID
    key: str
    holder: UUID


@frozen
class UsedKey:
    """A key that made a record; `answer` is the first one given, None while nobody got any."""

    account_id: UUID
    key: str
    record_id: UUID
    payload_sha256: bytes
    answer: Any


@frozen
class KeyInUse:
    """Another submission under this key is being received."""


class KeyLost(Unavailable):
    """Another submission took the key meanwhile; this one made no record."""


async def take_key(database: Database, account_id: UUID, key: str) -> HeldKey | UsedKey | KeyInUse:
    """Take a key for LEASE_SECONDS, or tell what has become of it."""
    return await database.transact(_in_take, HeldKey(account_id, key, uuid4()))


async def renew_key(database: Database, held: HeldKey) -> None:
    """Hold a key on for LEASE_SECONDS from now."""
    await database.transact(_in_renew, held)


async def release_key(database: Database, held: HeldKey) -> None:
    """Let go of a key whose submission came to nothing; a used one stays."""
    await database.transact(_in_release, held)


async def keep_answer(database: Database, account_id: UUID, key: str, record_id: UUID, answer: Any) -> Any:  # noqa: ANN401 - JSON of every shape
    """Keep the first answer given under a used key; return it, whoever gave it."""
    return await database.transact(_in_keep_answer, account_id, key, record_id, answer)


async def forget_keys(database: Database) -> None:
    """Forget keys whose days are over."""
    await database.transact(_in_forget)


async def in_use_key(connection: Connection, held: HeldKey, record_id: UUID, payload_sha256: bytes) -> None:
    """Make a key its record's, inside the transaction that makes the record; raises KeyLost."""
    asked = {**_named(held), "record_id": record_id, "payload_sha256": payload_sha256}
    cursor = await connection.execute(query("key_used"), asked)
    if await cursor.fetchone() is None:
        raise KeyLost("another submission under the same key was quicker")


async def _in_take(connection: Connection, wanted: HeldKey) -> HeldKey | UsedKey | KeyInUse:
    terms = {"lease_seconds": LEASE_SECONDS, "kept_seconds": KEPT_SECONDS}
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("key_taken"), {**_named(wanted), **terms})
        if await cursor.fetchone():
            return wanted
        await cursor.execute(query("key_read"), _named(wanted))
        row = await cursor.fetchone()
    if row is None or row["record_id"] is None:
        return KeyInUse()
    return UsedKey(account_id=wanted.account_id, key=wanted.key, **row)


async def _in_renew(connection: Connection, held: HeldKey) -> None:
    await connection.execute(query("key_renewed"), {**_named(held), "lease_seconds": LEASE_SECONDS})


async def _in_release(connection: Connection, held: HeldKey) -> None:
    await connection.execute(query("key_released"), _named(held))


async def _in_keep_answer(
    connection: Connection,
    account_id: UUID,
    key: str,
    record_id: UUID,
    answer: Any,  # noqa: ANN401 - JSON of every shape
) -> Any:  # noqa: ANN401 - the same
    named = {"account_id": account_id, "idempotency_key": key}
    asked = {**named, "record_id": record_id, "answer": Json(answer)}
    row = await (await connection.execute(query("key_answered"), asked)).fetchone()
    return answer if row is None else row[0]


async def _in_forget(connection: Connection) -> None:
    await connection.execute(query("keys_expired"), {"kept_seconds": KEPT_SECONDS})


def _named(held: HeldKey) -> dict[str, object]:
    return {"account_id": held.account_id, "idempotency_key": held.key, "holder": held.holder}

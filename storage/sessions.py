"""Who is signed in at a browser: passwords, sessions, and links that sign in once.

The database keeps the SHA-256 of secrets of 256 random bits, as with tokens, and passwords as argon2id, made
elsewhere: what is here costs next to nothing.
"""

import secrets
from collections.abc import Collection, Mapping
from typing import LiteralString
from uuid import UUID

from attrs import frozen
from psycopg.rows import class_row, dict_row

from storage.account import Account
from storage.accounts import hash_of
from storage.database import Connection, Database
from storage.sql import query

LINK_PREFIX = "rbl_"
_SECRET_BYTES = 32
_DAY = 86_400.0


@frozen(kw_only=True)
class Lasting:
    """How long somebody stays signed in: so long unused, and so long in all, in seconds."""

    idle_seconds: float = 14 * _DAY
    longest_seconds: float = 90 * _DAY


async def read_password(database: Database, name: str) -> tuple[Account, str | None] | None:
    """Return the account of that name, a closed one too, and the hash of its password, if it has one."""
    return await database.transact(_in_read_password, name)


async def set_password(database: Database, account_id: UUID, password_hash: str | None) -> bool:
    """Give an account a password, or none; everybody is signed out. False when there is no such account."""
    return await database.transact(_in_set_password, account_id, password_hash)


async def rehash_password(database: Database, account_id: UUID, old: str, new: str) -> None:
    """Keep the same password under another hash."""
    await database.transact(
        _in_execute, query("password_rehashed"), {"id": account_id, "old": old, "new": new}
    )


async def begin_session(database: Database, account_id: UUID, lasting: Lasting) -> str | None:
    """Sign somebody in; return the secret for the browser, None when the account was closed meanwhile."""
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    begun = await database.transact(_in_begin_session, account_id, hash_of(secret), lasting)
    return secret if begun else None


async def accounts_of_sessions(
    database: Database, lasting: Lasting, hashes: Collection[bytes]
) -> Mapping[bytes, Account]:
    """Return who is signed in by these secrets, by their hashes; those that are over are left out."""
    return await database.transact(_in_accounts_of_sessions, lasting, hashes)


async def end_session(database: Database, secret: str) -> None:
    """Sign one browser out."""
    await database.transact(_in_execute, query("session_ended"), {"secret_sha256": hash_of(secret)})


async def end_sessions(database: Database, account_id: UUID) -> None:
    """Sign every browser of an account out; links that were not used open nothing any more."""
    await database.transact(_in_execute, query("sessions_ended"), {"account_id": account_id})


async def count_sessions(database: Database, account_id: UUID) -> int:
    """Return at how many browsers an account is signed in."""
    return await database.transact(_in_count_sessions, account_id)


async def make_link(database: Database, account_id: UUID, seconds: float) -> str:
    """Make a link's secret, which signs in once within so many seconds."""
    secret = LINK_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    made = {"secret_sha256": hash_of(secret), "account_id": account_id, "seconds": seconds}
    await database.transact(_in_execute, query("link_made"), made)
    return secret


async def read_link(database: Database, secret: str) -> Account | None:
    """Return whom a link would sign in."""
    return await database.transact(_in_account_of, query("link_read"), hash_of(secret))


async def use_link(database: Database, secret: str) -> Account | None:
    """Use a link up, and return whom it signs in."""
    return await database.transact(_in_account_of, query("link_used"), hash_of(secret))


async def forget_sessions(database: Database) -> None:
    """Let go of sessions and links that are over; one that has lasted all its days is soon unused."""
    await database.transact(_in_execute, query("sessions_expired"), {})


async def _in_execute(connection: Connection, statement: LiteralString, given: Mapping[str, object]) -> None:
    await connection.execute(statement, given)


async def _in_read_password(connection: Connection, name: str) -> tuple[Account, str | None] | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("password_read"), {"name": name})
        row = await cursor.fetchone()
    if row is None:
        return None
    password_hash: str | None = row.pop("password_hash")
    return Account(**row), password_hash


async def _in_set_password(connection: Connection, account_id: UUID, password_hash: str | None) -> bool:
    given = {"id": account_id, "password_hash": password_hash}
    return await (await connection.execute(query("account_password"), given)).fetchone() is not None


async def _in_begin_session(
    connection: Connection, account_id: UUID, secret_sha256: bytes, lasting: Lasting
) -> bool:
    begun = {
        "secret_sha256": secret_sha256,
        "account_id": account_id,
        "idle_seconds": lasting.idle_seconds,
    }
    return await (await connection.execute(query("session_begun"), begun)).fetchone() is not None


async def _in_accounts_of_sessions(
    connection: Connection, lasting: Lasting, hashes: Collection[bytes]
) -> dict[bytes, Account]:
    asked = {
        "secrets": list(hashes),
        "idle_seconds": lasting.idle_seconds,
        "longest_seconds": lasting.longest_seconds,
    }
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("accounts_of_sessions"), asked)
        rows = await cursor.fetchall()
    found, used = {}, []
    for row in rows:
        secret_sha256, noted = row.pop("secret_sha256"), row.pop("noted")
        found[secret_sha256] = Account(**row)
        used += [] if noted else [secret_sha256]
    if used:
        moved = {"secrets": used, "idle_seconds": lasting.idle_seconds}
        await connection.execute(query("sessions_used"), moved)
    return found


async def _in_count_sessions(connection: Connection, account_id: UUID) -> int:
    row = await (await connection.execute(query("sessions_counted"), {"account_id": account_id})).fetchone()
    return row[0] if row else 0


async def _in_account_of(
    connection: Connection, statement: LiteralString, secret_sha256: bytes
) -> Account | None:
    async with connection.cursor(row_factory=class_row(Account)) as cursor:
        await cursor.execute(statement, {"secret_sha256": secret_sha256})
        return await cursor.fetchone()

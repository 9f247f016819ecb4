"""Accounts and their tokens. A token's secret is shown once; the database keeps its SHA-256 only.

A secret holds 256 random bits, so a plain hash is enough: nobody can try them all, and looking the hash up
tells nothing about the secret by the time it takes.
"""

import hashlib
import secrets
from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

from attrs import frozen
from psycopg.rows import class_row, dict_row

from storage.account import Account, Token
from storage.database import Connection, Database
from storage.errors import Refused
from storage.ids import new_id
from storage.sql import query

SECRET_PREFIX = "rbz_"  # noqa: S105 - what every secret begins with, so that leaked ones can be searched for
_SECRET_BYTES = 32
_LONGEST_SECONDS = 600.0  # for an account with very many records
MOST_LETTERS = 200  # of the name of an account or a token


@frozen
class HandedOver:
    """What becomes of the records of an account that is removed: they are another's, says `by`."""

    to: Account
    by: str


@frozen
class Deleted:
    """What becomes of them otherwise: they go for good, at once."""


Fate = HandedOver | Deleted


async def add_account(database: Database, name: str, *, is_service_owner: bool = False) -> Account:
    """Make an account; raises Refused when the name is empty, taken, too long or no text for a database."""
    if not name.strip() or not name.isprintable():
        raise Refused("an account needs a name of printable letters; give it one")
    if len(name) > MOST_LETTERS:
        raise Refused(f"an account's name may have {MOST_LETTERS} letters, this has {len(name)}; shorten it")
    account = await database.transact(_in_add_account, name, is_service_owner)
    if account is None:
        raise Refused(f"there is an account named {name!r} already; choose another name")
    return account


async def find_or_add_account(database: Database, name: str) -> Account:
    """Return the account of that name, made if need be; of those who come at once only one makes it."""
    return (
        await database.transact(_in_find_account, name)
        or await database.transact(_in_add_account, name, False)  # noqa: FBT003 - crossed by place
        # Somebody was quicker by a hair.
        or await database.transact(_in_find_account, name)
        or await add_account(database, name)
    )


async def find_account(database: Database, name: str) -> Account | None:
    """Return the account of that name."""
    return await database.transact(_in_find_account, name)


async def list_accounts(database: Database) -> tuple[Account, ...]:
    """Return every account, by name."""
    return await database.transact(_in_list_accounts)


async def disable_account(database: Database, account_id: UUID, *, disabled: bool = True) -> Account | None:
    """Close an account (its tokens open nothing) or open it again; its records are worked on all the same."""
    return await database.transact(_in_disable_account, account_id, disabled)


async def set_role(database: Database, account_id: UUID, *, is_service_owner: bool) -> Account | None:
    """Make an account the service owner's, or one like the others."""
    return await database.transact(_in_set_role, account_id, is_service_owner)


async def remove_account(database: Database, account: Account, fate: Fate | None = None) -> int:
    """Remove an account with its tokens and unfinished uploads; return how many records it had.

    Raises Refused while it has records whose `fate` is not told.
    """
    records, removed = await database.transact_within(_LONGEST_SECONDS, _in_remove_account, account.id, fate)
    if not removed:
        raise Refused(
            f"account {account.name!r} has {records} record(s); hand them over (--hand-over-to) "
            "or delete them by its name (--delete-records-of)"
        )
    return records


async def issue_token(
    database: Database, account_id: UUID, name: str, expires_at: datetime | None
) -> tuple[Token, str]:
    """Make a token; return it with its secret, which cannot be had again."""
    secret = SECRET_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    return await database.transact(_in_issue_token, account_id, name, expires_at, hash_of(secret)), secret


async def revoke_token(database: Database, token_id: UUID) -> Token | None:
    """Make a token open nothing from now on; None when there is no such token."""
    return await database.transact(_in_revoke_token, token_id)


async def list_tokens(database: Database, account_id: UUID) -> tuple[Token, ...]:
    """Return the tokens of an account, the oldest first, revoked and expired ones too."""
    return await database.transact(_in_list_tokens, account_id)


async def account_of_secret(database: Database, secret: str) -> Account | None:
    """Return whose secret this is.

    None for one that is wrong, revoked, expired, or of a disabled account: all alike, for the same work.
    """
    secret_sha256 = hash_of(secret)
    return (await accounts_of_secrets(database, [secret_sha256])).get(secret_sha256)


async def accounts_of_secrets(database: Database, hashes: Collection[bytes]) -> Mapping[bytes, Account]:
    """Return whose secrets these are, by their hashes; those that open nothing are left out."""
    return await database.transact(in_accounts_of_secrets, hashes)


def hash_of(secret: str) -> bytes:
    """Return what the database keeps of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


async def _in_add_account(connection: Connection, name: str, is_service_owner: bool) -> Account | None:  # noqa: FBT001 - crossed by place
    async with connection.cursor(row_factory=class_row(Account)) as cursor:
        made = {"id": new_id(), "name": name, "is_service_owner": is_service_owner}
        await cursor.execute(query("account_added"), made)
        return await cursor.fetchone()


async def _in_find_account(connection: Connection, name: str) -> Account | None:
    async with connection.cursor(row_factory=class_row(Account)) as cursor:
        await cursor.execute(query("account_found"), {"name": name})
        return await cursor.fetchone()


async def _in_list_accounts(connection: Connection) -> tuple[Account, ...]:
    async with connection.cursor(row_factory=class_row(Account)) as cursor:
        await cursor.execute(query("accounts_listed"))
        return tuple(await cursor.fetchall())


async def _in_disable_account(connection: Connection, account_id: UUID, disabled: bool) -> Account | None:  # noqa: FBT001 - crossed by place
    async with connection.cursor(row_factory=class_row(Account)) as cursor:
        await cursor.execute(query("account_disabled"), {"id": account_id, "disabled": disabled})
        return await cursor.fetchone()


async def _in_set_role(connection: Connection, account_id: UUID, is_service_owner: bool) -> Account | None:  # noqa: FBT001 - crossed by place
    async with connection.cursor(row_factory=class_row(Account)) as cursor:
        await cursor.execute(query("account_role"), {"id": account_id, "is_service_owner": is_service_owner})
        return await cursor.fetchone()


async def _in_remove_account(connection: Connection, account_id: UUID, fate: Fate | None) -> tuple[int, bool]:
    async with connection.transaction():
        await connection.execute(query("migration_patience"))
        await connection.execute(query("account_locked"), {"id": account_id})
        cursor = await connection.execute(query("account_records"), {"id": account_id})
        row = await cursor.fetchone()
        records: int = row[0] if row else 0
        match fate:
            case HandedOver(to, by):
                handed = {"account_id": account_id, "owner_id": to.id, "by": by}
                await connection.execute(query("account_handed_over"), handed)
            case Deleted():
                await connection.execute(query("account_emptied"), {"account_id": account_id})
            case None if records:
                return records, False
            case None:
                pass
        await connection.execute(query("account_uploads_dropped"), {"account_id": account_id})
        await connection.execute(query("account_removed"), {"id": account_id})
    return records, True


async def _in_issue_token(
    connection: Connection, account_id: UUID, name: str, expires_at: datetime | None, secret_sha256: bytes
) -> Token:
    async with connection.cursor(row_factory=class_row(Token)) as cursor:
        await cursor.execute(
            query("token_issued"),
            {
                "id": new_id(),
                "account_id": account_id,
                "name": name,
                "secret_sha256": secret_sha256,
                "expires_at": expires_at,
            },
        )
        (token,) = await cursor.fetchall()
        return token


async def _in_revoke_token(connection: Connection, token_id: UUID) -> Token | None:
    async with connection.cursor(row_factory=class_row(Token)) as cursor:
        await cursor.execute(query("token_revoked"), {"id": token_id})
        return await cursor.fetchone()


async def _in_list_tokens(connection: Connection, account_id: UUID) -> tuple[Token, ...]:
    async with connection.cursor(row_factory=class_row(Token)) as cursor:
        await cursor.execute(query("tokens_listed"), {"account_id": account_id})
        return tuple(await cursor.fetchall())


async def in_accounts_of_secrets(connection: Connection, hashes: Collection[bytes]) -> dict[bytes, Account]:
    """Do as `accounts_of_secrets` does, asyncio-flavoured, on a connection that one has."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query("accounts_of_secrets"), {"secrets": list(hashes)})
        rows = await cursor.fetchall()
    found, used = {}, []
    for row in rows:
        secret_sha256, token_id, noted = (row.pop(name) for name in ("secret_sha256", "token_id", "noted"))
        found[secret_sha256] = Account(**row)
        used += [] if noted else [token_id]
    if used:
        await connection.execute(query("tokens_used"), {"ids": used})
    return found

"""Who asks, and what a record is at, in one call: most of what a poll costs is the way to the database."""

from collections.abc import Collection, Mapping
from uuid import UUID

from attrs import frozen

from storage.account import Account
from storage.accounts import in_accounts_of_secrets
from storage.database import Connection, Database
from storage.readiness import Readiness, in_read_many


@frozen
class Look:
    """A record that is asked for, with its text or without."""

    record_id: UUID
    with_text: bool


@frozen
class Entry:
    """Somebody's secret, by its hash, and what it is to open."""

    secret_sha256: bytes
    look: Look | None = None


@frozen
class Entered:
    """Whose secret it was, and what the record is at: None where there is none, whoever's it is."""

    account: Account
    readiness: Readiness | None


async def enter(database: Database, entries: Collection[Entry]) -> Mapping[Entry, Entered]:
    """Return what each secret opened; those that open nothing are left out, and nothing is read for them."""
    return await database.transact(_in_enter, entries)


async def look_at(database: Database, looks: Collection[Look]) -> Mapping[Look, Readiness]:
    """Return what is there of what is looked at, whoever's it is."""
    return await database.transact(_in_look_at, looks)


async def _in_enter(connection: Connection, entries: Collection[Entry]) -> dict[Entry, Entered]:
    accounts = await in_accounts_of_secrets(connection, {entry.secret_sha256 for entry in entries})
    let_in = [entry for entry in entries if entry.secret_sha256 in accounts]
    looks = {entry.look for entry in let_in if entry.look is not None}
    found = await _in_look_at(connection, looks) if looks else {}
    return {
        entry: Entered(accounts[entry.secret_sha256], found.get(entry.look) if entry.look else None)
        for entry in let_in
    }


async def _in_look_at(connection: Connection, looks: Collection[Look]) -> dict[Look, Readiness]:
    ids = {look.record_id for look in looks}
    with_text = {look.record_id for look in looks if look.with_text}
    found = await in_read_many(connection, ids, with_text, None)
    return {look: found[look.record_id] for look in looks if look.record_id in found}

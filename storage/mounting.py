"""Mounting a store: a wrong folder, or one of another installation, is refused before anything is changed."""

import json
import os
from pathlib import Path
from uuid import UUID, uuid4

import trio
from attrs import asdict, frozen

from storage.audio import Store, fsync_folder
from storage.database import Connection, Database
from storage.errors import StateFolderRefused
from storage.migrate import installation
from storage.sql import query

_NAME = "store.json"
_NOT_OURS_TO_COUNT = ("lost+found",)  # the root of a fresh disk has it


@frozen(kw_only=True)
class Identity:
    """What `store.json` holds."""

    store: UUID
    installation: UUID


async def mount_store(database: Database, root: Path) -> Store:
    """Return the store at `root`, which must exist; an empty folder becomes a new store of this installation.

    Raises StateFolderRefused for a folder that holds something else, belongs to another installation, or is
    unknown to the database.
    """
    ours = await installation(database)
    identity = await trio.to_thread.run_sync(read_identity, root)
    if identity is None:
        # The row comes first: a store without a row is refused, a row without a store harms nobody.
        identity = Identity(store=uuid4(), installation=ours)
        await database.transact(_in_make_store, identity.store)
        identity = await trio.to_thread.run_sync(_write, root, identity)
    if identity.installation != ours:
        raise StateFolderRefused(
            f"the store {root} belongs to installation {identity.installation} and this database to {ours}; "
            "set the state folder, or database.dsn, that goes with the other"
        )
    if not await database.transact(_in_know_store, identity.store):
        raise StateFolderRefused(
            f"the database does not know the store {root} ({identity.store}); "
            "restore the database it belongs to, or give this one an empty folder"
        )
    store = Store(id=identity.store, root=root)
    await store.in_thread(store.prepare)
    return store


async def _in_make_store(connection: Connection, store_id: UUID) -> None:
    await connection.execute(query("store_made"), {"id": store_id})


async def _in_know_store(connection: Connection, store_id: UUID) -> bool:
    cursor = await connection.execute(query("store_known"), {"id": store_id})
    return await cursor.fetchone() is not None


def read_identity(root: Path) -> Identity | None:
    """Return what the folder says it is, None for an empty one.

    Raises StateFolderRefused for one that holds something else.
    """
    try:
        text = (root / _NAME).read_bytes()
    except FileNotFoundError:
        _check_empty(root)
        return None
    try:
        said = json.loads(text)
        return Identity(store=UUID(said["store"]), installation=UUID(said["installation"]))
    except Exception as error:  # whatever is wrong with it, it is not the file we wrote
        message = f"{root / _NAME} does not say whose store this is; restore it from a backup"
        raise StateFolderRefused(message) from error


def _check_empty(root: Path) -> None:
    found = [
        entry.name
        for entry in os.scandir(root)
        if entry.name not in _NOT_OURS_TO_COUNT and not entry.name.startswith(f"{_NAME}.")
    ]
    if found:
        raise StateFolderRefused(
            f"{root} holds files ({min(found)}) and no {_NAME}, so it is no store of Rubezh; "
            "choose an empty folder"
        )


def _write(root: Path, identity: Identity) -> Identity:
    """Write the file whole or not at all; whoever comes second keeps the first one's."""
    draft = root / f"{_NAME}.{identity.store}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        json.dump({name: str(value) for name, value in asdict(identity).items()}, file)
        file.flush()
        os.fsync(fd)
    try:
        os.link(draft, root / _NAME)
    except FileExistsError:
        identity = read_identity(root) or identity
    finally:
        draft.unlink()
    fsync_folder(root)
    return identity

"""What goes for good: deleted records whose days are over, first from the database and then from the disk.

The transaction that deletes a row leaves another one that says so; only that is a licence to remove bytes.
"""

import shutil
from uuid import UUID

import structlog
from attrs import frozen
from psycopg.rows import class_row

from storage.audio import Store
from storage.database import Connection, Database
from storage.sql import query
from storage.upload_files import UPLOADS

DELETED_FOR = 7 * 86_400.0
_BATCH = 500

log = structlog.get_logger()


@frozen(kw_only=True)
class Purged:
    """A record that is gone; `name` is its owner's, `stop_code` says whether it was stopped."""

    id: UUID
    name: str
    milestone: str
    stop_code: str | None


async def purge_deleted(database: Database) -> None:
    """Let deleted records go whose days are over, and tell of each."""
    while purged := await database.transact(_in_purge):
        for each in purged:
            stopped = {} if each.stop_code is None else {"code": each.stop_code}
            log.info("record.purged", record=each.id, owner=each.name, milestone=each.milestone, **stopped)


async def carry_out_removals(database: Database, store: Store) -> None:
    """Remove from the store what is gone from the database; what cannot be removed is tried again later."""
    for record_id in await database.transact(_in_read, store.id):
        try:
            await store.in_thread(_remove, store, record_id)
        except OSError as error:
            log.warning("removal.failed", record=record_id, cause=str(error))
        else:
            await database.transact(_in_done, record_id)


def _remove(store: Store, record_id: UUID) -> None:
    (store.root / UPLOADS / str(record_id)).unlink(missing_ok=True)
    for folder in (store.record_folder(record_id), store.root / "quarantine" / str(record_id)):
        if folder.exists():
            shutil.rmtree(folder)


async def _in_purge(connection: Connection) -> list[Purged]:
    async with connection.cursor(row_factory=class_row(Purged)) as cursor:
        await cursor.execute(query("records_purged"), {"kept_seconds": DELETED_FOR, "limit": _BATCH})
        return await cursor.fetchall()


async def _in_read(connection: Connection, store_id: UUID) -> list[UUID]:
    asked = {"store_id": store_id, "limit": _BATCH}
    return [row[0] for row in await (await connection.execute(query("removals_read"), asked)).fetchall()]


async def _in_done(connection: Connection, record_id: UUID) -> None:
    await connection.execute(query("removal_done"), {"record_id": record_id})

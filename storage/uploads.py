"""Resumable uploads in the database: how far each is, whose writes to it count, and how it becomes a record.

Each request that continues an upload becomes its holder and thereby fences the one before, whose writes are
guarded by its own name: like a claim, but taken over instead of waited for.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from attrs import frozen
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from storage.database import Connection, Database
from storage.errors import Unavailable
from storage.sql import query
from storage.submissions import Submission, in_accept, until_known
from storage.upload import Upload


@frozen(kw_only=True)
class Begun:
    """What an upload begins with; it is kept for `kept_seconds` after each byte that is counted."""

    id: UUID
    account_id: UUID
    store_id: UUID
    bytes: int
    metadata: str
    options: Mapping[str, Any]
    kept_seconds: float


@frozen
class TooMany:
    """The account has as many unfinished uploads as it may."""


class UploadLost(Unavailable):
    """The upload is another request's by now, or gone; nothing was written."""


async def begin_upload(database: Database, begun: Begun, most: int) -> Upload | TooMany:
    """Make an upload, unless its account has `most` unfinished ones."""
    return await database.transact(_in_begin, begun, most)


async def read_upload(database: Database, upload_id: UUID, account_id: UUID) -> Upload | None:
    """Return an upload; None for one that is unknown, over, or somebody else's."""
    return await database.transact(_in_read, upload_id, account_id)


async def hold_upload(
    database: Database, upload_id: UUID, account_id: UUID, holder: UUID, kept_seconds: float
) -> Upload | None:
    """Become the one whose writes to the upload count; None like `read_upload`."""
    asked = {"id": upload_id, "account_id": account_id, "holder": holder, "kept_seconds": kept_seconds}
    return await database.transact(_in_hold, asked)


async def count_received(
    database: Database, upload_id: UUID, holder: UUID, received: int, kept_seconds: float
) -> datetime:
    """Count bytes that are flushed, but never the last; return when the lease ends. Raises UploadLost."""
    asked = {"id": upload_id, "holder": holder, "received": received, "kept_seconds": kept_seconds}
    return await database.transact(_in_count, asked)


async def finish_upload(database: Database, submission: Submission, holder: UUID, *, lane: str) -> UUID:
    """Make the record of an upload that is all there, as `accept` does; raises UploadLost."""
    return await until_known(database, _in_finish, submission, holder, lane)


async def drop_upload(database: Database, upload_id: UUID, account_id: UUID) -> bool:
    """Give an unfinished upload up; after True there certainly is no record of it, and never will be."""
    return await database.transact(_in_drop, upload_id, account_id)


async def expire_uploads(database: Database, store_id: UUID) -> list[UUID]:
    """Forget the uploads of a store whose lease is over; return the unfinished ones, whose bytes go."""
    return await database.transact(_in_expire, store_id)


async def unfinished_of(database: Database, ids: list[UUID]) -> set[UUID]:
    """Return which of these uploads may still be continued."""
    return await database.transact(_in_unfinished_of, ids)


async def _in_begin(connection: Connection, begun: Begun, most: int) -> Upload | TooMany:
    row = {
        "id": begun.id,
        "account_id": begun.account_id,
        "store_id": begun.store_id,
        "source_bytes": begun.bytes,
        "metadata": begun.metadata,
        "options": Jsonb(begun.options),
        "kept_seconds": begun.kept_seconds,
    }
    async with connection.transaction():
        key = int.from_bytes(begun.account_id.bytes[8:], "big", signed=True)
        await connection.execute(query("submission_lock"), {"key": key})
        counted = await connection.execute(query("uploads_unfinished"), row)
        [unfinished] = await counted.fetchone() or [0]
        if unfinished >= most:
            return TooMany()
        async with connection.cursor(row_factory=class_row(Upload)) as cursor:
            await cursor.execute(query("upload_begun"), row)
            [upload] = await cursor.fetchall()
    return upload


async def _in_read(connection: Connection, upload_id: UUID, account_id: UUID) -> Upload | None:
    async with connection.cursor(row_factory=class_row(Upload)) as cursor:
        await cursor.execute(query("upload_read"), {"id": upload_id, "account_id": account_id})
        return await cursor.fetchone()


async def _in_hold(connection: Connection, asked: Mapping[str, Any]) -> Upload | None:
    async with connection.cursor(row_factory=class_row(Upload)) as cursor:
        await cursor.execute(query("upload_held"), asked)
        return await cursor.fetchone()


async def _in_count(connection: Connection, asked: Mapping[str, Any]) -> datetime:
    row = await (await connection.execute(query("upload_counted"), asked)).fetchone()
    if row is None:
        raise UploadLost("the upload is another request's by now, or gone")
    until: datetime = row[0]
    return until


async def _in_finish(connection: Connection, submission: Submission, holder: UUID, lane: str) -> UUID:
    async with connection.transaction():
        asked = {"id": submission.id, "holder": holder}
        if await (await connection.execute(query("upload_finished"), asked)).fetchone():
            return await in_accept(connection, submission, lane)
        # Gone with its account, perhaps, after an earlier try had made the record.
        if await (await connection.execute(query("submission_known"), asked)).fetchone():
            return submission.id
        raise UploadLost("the upload is another request's by now, or gone")


async def _in_drop(connection: Connection, upload_id: UUID, account_id: UUID) -> bool:
    asked = {"id": upload_id, "account_id": account_id}
    return await (await connection.execute(query("upload_dropped"), asked)).fetchone() is not None


async def _in_expire(connection: Connection, store_id: UUID) -> list[UUID]:
    rows = await (await connection.execute(query("uploads_expired"), {"store_id": store_id})).fetchall()
    return [row[0] for row in rows]


async def _in_unfinished_of(connection: Connection, ids: list[UUID]) -> set[UUID]:
    rows = await (await connection.execute(query("uploads_known"), {"ids": ids})).fetchall()
    return {row[0] for row in rows}

"""Submissions: the one door by which a record comes into being."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec
from uuid import UUID

import trio
from attrs import asdict, frozen

from storage.database import Connection, Database
from storage.errors import DatabaseUnavailable
from storage.keys import HeldKey, in_use_key
from storage.sql import query

ACCEPT_SECONDS = 20.0  # how long an accept is tried again while the database does not answer
_PAUSE = 0.5
_BYTES_PER_SECOND = 16_000.0  # what a recording of unknown length is taken to have

P = ParamSpec("P")


@frozen(kw_only=True)
class Submission:
    """What becomes a record: its source is already durable at `source_path` in the store."""

    id: UUID
    owner_id: UUID
    filename: str
    title: str
    description: str
    topics: tuple[str, ...]
    asked_language: str | None
    channels: str
    track: int | None
    hotwords: str
    store_id: UUID
    source_path: str
    source_bytes: int
    source_sha256: bytes
    translate: bool = False

    @property
    def fingerprint(self) -> bytes:
        """Return 32 bytes that are the same for the same audio with the same options that decide its text."""
        return fingerprint(
            self.source_sha256,
            asked_language=self.asked_language,
            channels=self.channels,
            track=self.track,
            hotwords=self.hotwords,
            translate=self.translate,
        )


def fingerprint(
    source_sha256: bytes,
    *,
    asked_language: str | None,
    channels: str,
    track: int | None,
    hotwords: str,
    translate: bool = False,
) -> bytes:
    """Return a submission's fingerprint before there is one: names and titles do not change the text."""
    options: dict[str, object] = {
        "language": asked_language,
        "channels": channels,
        "track": track,
        "hotwords": hotwords,
    }
    if translate:  # left out where it is not: fingerprints outlive the versions that made them
        options["translate"] = True
    canonical = json.dumps(options, sort_keys=True, separators=(",", ":")).encode("ascii")
    return hashlib.sha256(source_sha256 + canonical).digest()


async def accept(database: Database, submission: Submission, *, lane: str) -> UUID:
    """Make the record, waiting in `lane` for its first stage; return its id.

    Said twice it is done once, so an accept whose answer was lost is simply said again, until ACCEPT_SECONDS
    have passed. Raises DatabaseUnavailable when the outcome is still unknown then (the bytes must stay),
    DataRefused when there certainly is no record.
    """
    return await until_known(database, in_accept, submission, lane)


async def accept_under_key(
    database: Database, submission: Submission, held: HeldKey, payload_sha256: bytes, *, lane: str
) -> UUID:
    """Do as `accept` does, and make the key the record's in the same transaction.

    Raises KeyLost when another submission took the key meanwhile: there certainly is no record then.
    """
    return await until_known(database, _in_accept_under_key, submission, held, payload_sha256, lane)


async def accept_or_find(database: Database, submission: Submission, *, lane: str) -> UUID:
    """Do as `accept` does, unless the owner has a record of the same fingerprint: return that one's id."""
    return await until_known(database, _in_accept_or_find, submission, lane)


async def was_accepted(database: Database, record_id: UUID) -> bool:
    """Tell whether a record has come into being."""
    return await database.transact(_in_was_accepted, record_id)


async def find_same(database: Database, owner_id: UUID, fingerprint: bytes) -> UUID | None:
    """Return the owner's oldest record of that fingerprint that is not deleted."""
    return await database.transact(_in_find_same, owner_id, fingerprint)


async def queued_seconds(database: Database, owner_id: UUID) -> float:
    """Return how many seconds of audio an owner has in the queue, by their size where nobody knows yet."""
    return await database.transact(_in_queued_seconds, owner_id)


async def until_known(
    database: Database,
    work: Callable[Concatenate[Connection, P], Awaitable[UUID]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> UUID:
    """Say again for ACCEPT_SECONDS what may be said twice, until the database has answered."""
    until = trio.current_time() + ACCEPT_SECONDS
    while True:
        try:
            return await database.transact(work, *args, **kwargs)
        except DatabaseUnavailable:
            if trio.current_time() + _PAUSE >= until:
                raise
        await trio.sleep(_PAUSE)


async def in_accept(connection: Connection, submission: Submission, lane: str) -> UUID:
    """Make the record, on a connection that may be inside a transaction."""
    await _in_insert(connection, submission, lane)
    return submission.id


async def _in_insert(connection: Connection, submission: Submission, lane: str) -> bool:
    """Make the record; False when it is there already, as an earlier try made it."""
    row = asdict(submission, recurse=False)
    row |= {"topics": list(submission.topics), "fingerprint": submission.fingerprint, "lane": lane}
    cursor = await connection.execute(query("submission_accepted"), row)
    return await cursor.fetchone() is not None


async def _in_accept_under_key(
    connection: Connection, submission: Submission, held: HeldKey, payload_sha256: bytes, lane: str
) -> UUID:
    async with connection.transaction():
        if await _in_insert(connection, submission, lane):
            await in_use_key(connection, held, submission.id, payload_sha256)
    return submission.id


async def _in_accept_or_find(connection: Connection, submission: Submission, lane: str) -> UUID:
    async with connection.transaction():
        both = hashlib.sha256(submission.owner_id.bytes + submission.fingerprint).digest()
        key = int.from_bytes(both[:8], "big", signed=True)
        await connection.execute(query("submission_lock"), {"key": key})
        same = await _in_find_same(connection, submission.owner_id, submission.fingerprint)
        return same or await in_accept(connection, submission, lane)


async def _in_was_accepted(connection: Connection, record_id: UUID) -> bool:
    cursor = await connection.execute(query("submission_known"), {"id": record_id})
    return await cursor.fetchone() is not None


async def _in_find_same(connection: Connection, owner_id: UUID, fingerprint: bytes) -> UUID | None:
    cursor = await connection.execute(
        query("submission_same"), {"owner_id": owner_id, "fingerprint": fingerprint}
    )
    row = await cursor.fetchone()
    return row[0] if row else None


async def _in_queued_seconds(connection: Connection, owner_id: UUID) -> float:
    asked = {"owner_id": owner_id, "bytes_per_second": _BYTES_PER_SECOND}
    row = await (await connection.execute(query("account_queued"), asked)).fetchone()
    return float(row[0]) if row else 0.0

"""A recording on its way from the user's disk into the store: found there already, or accepted durably."""

import errno
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import trio
from attrs import asdict, evolve, frozen

from daemon.cli.service_log import tell_service_log
from daemon.intake.options import Options, storable
from storage.account import Account
from storage.audio import Received, Store
from storage.database import Database
from storage.errors import DataRefused
from storage.ids import new_id
from storage.submissions import Submission, accept_or_find, find_same, fingerprint

_BLOCK = 2**20

Share = Callable[[float], None]  # told again and again how much of a file was read, 0 to 1


@frozen(kw_only=True)
class Site:
    """Where recordings go: the database, the store, the lane of the first stage."""

    database: Database
    store: Store
    lane: str


async def find_or_accept(path: Path, options: Options, site: Site, account: Account, share: Share) -> UUID:
    """Return the account's record of these bytes with these options, made if there is none.

    Raises OSError when the file cannot be read to its end.
    """
    sha256 = hashlib.sha256()

    async def add(block: bytes) -> None:
        sha256.update(block)

    await _read(path, add, share)
    same = fingerprint(
        sha256.digest(),
        asked_language=options.asked_language,
        channels=options.channels,
        track=options.track,
        hotwords=options.hotwords,
    )
    found = await find_same(site.database, account.id, same)
    return found or await _accept(path, options, site, account, share)


async def _accept(path: Path, options: Options, site: Site, account: Account, share: Share) -> UUID:
    """Make the record: the bytes first, durably, then the row."""
    record_id = new_id()
    async with site.store.receive(record_id) as receiving:
        await _read(path, receiving.write, share)
        if not receiving.size:
            raise OSError(errno.ENODATA, "it has become empty")
        options = evolve(options, filename=storable(path.name))
        submission = _submission(record_id, options, await receiving.keep(), site, account)
        try:
            accepted = await accept_or_find(site.database, submission, lane=site.lane)
        except DataRefused:
            receiving.abandon()
            raise
        if accepted != record_id:
            receiving.abandon()
            return accepted
    tell_service_log(
        "submission.accepted",
        record=record_id,
        owner=account.id,
        account=account.name,
        bytes=submission.source_bytes,
    )
    return record_id


def _submission(
    record_id: UUID, options: Options, received: Received, site: Site, account: Account
) -> Submission:
    return Submission(
        id=record_id,
        owner_id=account.id,
        store_id=site.store.id,
        source_path=received.path,
        source_bytes=received.size,
        source_sha256=received.sha256,
        **asdict(options, recurse=False),
    )


async def _read(path: Path, take: Callable[[bytes], Awaitable[None]], share: Share) -> None:
    file, done = trio.Path(path), 0
    size = (await file.stat()).st_size
    async with await file.open("rb") as reading:
        while block := await reading.read(_BLOCK):
            await take(block)
            done += len(block)
            share(min(1.0, done / max(size, 1)))

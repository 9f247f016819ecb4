"""Where the bytes live: one folder per store, every name in it chosen by us.

::

    store.json             the ids of the store and of its installation
    incoming/<record>      being received, held by a flock; nobody was told its id yet
    uploads/<record>       resumable uploads, each held by a flock while it is written
    records/<record>/source
    records/<record>/<claim token>/...   one attempt's own files
    records/<record>/listening/<token>/...   a listening copy, each making's in a folder of its own
    quarantine/<record>    bytes no row knows, put aside for days
"""

import errno
import fcntl
import hashlib
import math
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path, PurePosixPath
from typing import TypeVar
from uuid import UUID

import trio
from attrs import field, frozen

from storage.errors import NoSpace

SOURCE = "source"
LISTENING = "listening"
_FOLDERS = ("incoming", "uploads", "records", "quarantine")
_BLOCK = 256 * 1024  # what is gathered before a thread is asked to write it
_RESERVE = 256 * 2**20  # left free on the disk: PostgreSQL may live on it, and must not meet its end
_THREADS = 8
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

T = TypeVar("T")


@frozen(kw_only=True)
class Received:
    """A source that is on disk for good, `size` bytes long; `path` is relative to the store's root."""

    path: str
    size: int
    sha256: bytes


@frozen(kw_only=True)
class Store:
    """A mounted store; `reserve` is how many bytes of its disk a received file must leave free."""

    id: UUID
    root: Path
    reserve: int = _RESERVE
    _threads: trio.CapacityLimiter = field(
        factory=lambda: trio.CapacityLimiter(_THREADS), eq=False, repr=False
    )

    def prepare(self) -> None:
        """Make the folders inside the root."""
        for name in _FOLDERS:
            (self.root / name).mkdir(mode=0o700, exist_ok=True)
        fsync_folder(self.root)

    def path(self, relative: str) -> Path:
        """Return the absolute path of what a row names; raises ValueError for one that leaves the root."""
        inside = PurePosixPath(relative)
        path = self.root / inside
        if (
            inside.is_absolute()
            or ".." in inside.parts
            or not path.resolve().is_relative_to(self.root.resolve())
        ):
            raise ValueError(f"{relative!r} is not a path inside the store")
        return path

    def record_folder(self, record_id: UUID) -> Path:
        """Return the folder of all that belongs to a record."""
        return self.root / "records" / str(record_id)

    def source(self, record_id: UUID) -> Path:
        """Return where a record's source lies."""
        return self.record_folder(record_id) / SOURCE

    @asynccontextmanager
    async def receive(self, record_id: UUID) -> AsyncIterator["Receiving"]:
        """Receive a source; left without `keep` (or after `abandon`), nothing of it stays on the disk."""
        receiving = await self.in_thread(Receiving, self, record_id)
        try:
            yield receiving
        finally:
            with trio.CancelScope(shield=True):
                await self.in_thread(receiving.end)

    async def attempt_folder(self, record_id: UUID, token: UUID) -> Path:
        """Make the folder of one attempt, its name durable.

        Raises FileNotFoundError when the record has no folder in this store.
        """
        return await self.in_thread(self._make_attempt_folder, record_id, token)

    async def sweep_attempts(
        self, record_id: UUID, keep: Collection[str], *, until: float = math.inf
    ) -> None:
        """Remove the folders of attempts whose claims are gone.

        `keep` holds folder names: of the current claim, and of every path the row names. The source is never
        touched. Only who holds the record's claim knows all of them, so only the holder may sweep: `until` is
        when the claim may end, on the system's monotonic clock, and nothing seen later than that is touched.
        """
        await self.in_thread(self._sweep_attempts, record_id, frozenset(keep), until)

    async def listening_folder(self, record_id: UUID, token: UUID, *, until: float) -> Path:
        """Make the folder of one making of a listening copy, after removing those of all others.

        Only who holds the making may: `until` is when the hold may end, on the system's monotonic clock.
        Raises FileNotFoundError when the record has no folder in this store.
        """
        return await self.in_thread(self._make_listening_folder, record_id, token, until)

    async def check_room(self, size: int) -> None:
        """Raise NoSpace when so many bytes cannot be received."""
        await self.in_thread(self.need_room, size)

    def need_room(self, size: int) -> None:
        """Do the same, in a thread that may wait for the disk."""
        with telling_full_disks(self.root):
            disk = os.statvfs(self.root)
            if disk.f_bavail * disk.f_frsize < self.reserve + size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        """Run file work in one of the store's few threads; it ends, cancelled or not, before this returns."""
        return await trio.to_thread.run_sync(work, *arguments, limiter=self._threads)

    def _make_attempt_folder(self, record_id: UUID, token: UUID) -> Path:
        folder = self.record_folder(record_id) / str(token)
        with telling_full_disks(self.root):
            folder.mkdir(mode=0o700, exist_ok=True)
            fsync_folder(folder.parent)
        return folder

    def _make_listening_folder(self, record_id: UUID, token: UUID, until: float) -> Path:
        folder = self.record_folder(record_id) / LISTENING / str(token)
        with telling_full_disks(self.root):
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            _sweep(folder.parent, frozenset(), until)
            folder.mkdir(mode=0o700, exist_ok=True)
            fsync_folder(folder.parent)
            fsync_folder(folder.parent.parent)
        return folder

    def _sweep_attempts(self, record_id: UUID, keep: frozenset[str], until: float) -> None:
        _sweep(self.record_folder(record_id), keep | {SOURCE, LISTENING}, until)


def _sweep(folder: Path, keep: frozenset[str], until: float) -> None:
    """Remove the folders inside, but those to be kept and whatever is made after `until`."""
    with os.scandir(folder) as entries:
        seen = list(entries)
    if time.monotonic() >= until:  # a process that was suspended may see the folder of the next holder
        return
    for entry in seen:
        if entry.name not in keep and entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)


class Receiving:
    """A source on its way in, `size` bytes so far."""

    def __init__(self, store: Store, record_id: UUID) -> None:
        self.record_id = record_id
        self.size = 0
        self._store = store
        self._gathered = bytearray()
        self._sha256 = hashlib.sha256()
        self._kept = False
        self._folder: Path | None = None  # the record's, once we made it
        self._place = store.root / "incoming" / str(record_id)
        with telling_full_disks(store.root):
            self._fd = os.open(self._place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # Says "somebody is at it" to a daemon that starts on the same store; a new file is nobody else's.
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    async def expect(self, size: int) -> None:
        """Raise NoSpace when there is no room for so many bytes."""
        await self._store.check_room(size)

    async def write(self, chunk: bytes) -> None:
        """Take more bytes; raises NoSpace when the disk is full."""
        self.size += len(chunk)
        self._gathered += chunk
        if len(self._gathered) >= _BLOCK:
            gathered, self._gathered = self._gathered, bytearray()
            await self._store.in_thread(self._put, gathered)

    async def keep(self) -> Received:
        """Make the bytes durable under the record's own name; what is returned may be written into a row."""
        await self._store.in_thread(self._keep)
        path = self._place.relative_to(self._store.root)
        return Received(path=str(path), size=self.size, sha256=self._sha256.digest())

    def abandon(self) -> None:
        """Let the bytes go after all: only when it is certain that no row names them."""
        self._kept = False

    def end(self) -> None:
        """Close, and remove what was not kept."""
        try:
            if not self._kept:
                self._place.unlink(missing_ok=True)
                if self._folder is not None:
                    self._folder.rmdir()
        finally:
            os.close(self._fd)

    def _put(self, gathered: bytearray) -> None:
        self._sha256.update(gathered)
        put_block(self._store, self._fd, gathered)

    def _keep(self) -> None:
        self._put(self._gathered)
        with telling_full_disks(self._store.root):
            os.fsync(self._fd)
            folder = self._store.record_folder(self.record_id)
            folder.mkdir(mode=0o700)
            self._folder = folder
            self._place = self._place.rename(folder / SOURCE)
            fsync_folder(folder)
            fsync_folder(folder.parent)
        self._kept = True


def put_block(store: Store, fd: int, block: bytearray) -> None:
    """Write all of a block, if the disk has room for it beside the store's reserve; raises NoSpace."""
    with telling_full_disks(store.root):
        store.need_room(len(block))
        rest = memoryview(block)
        while rest:
            rest = rest[os.write(fd, rest) :]


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def telling_full_disks(root: Path) -> Iterator[None]:
    """Turn the system's words for a full disk into ours."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise NoSpace(
            f"the disk of the store {root} is full ({error.strerror}); free some space on it"
        ) from error

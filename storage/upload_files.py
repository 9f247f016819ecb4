"""A resumable upload's file: `uploads/<id>` in the store, locked by the request that writes it.

It becomes a record's source by a second name, given before the row is committed; the first one goes
afterwards. So whoever comes after a crash finds and locks the same file under either name.
"""

import errno
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import trio

from storage.audio import SOURCE, Received, Store, fsync_folder, put_block, telling_full_disks
from storage.errors import RubezhError, Unavailable

UPLOADS = "uploads"
_BLOCK = 256 * 1024
_READ_BLOCK = 8 * 2**20


class UploadBusy(Unavailable):
    """Another process writes this upload."""


class UploadGone(RubezhError):
    """Bytes that were counted are not in the store any more."""


class UploadFile:
    """The open, locked file of one upload: `size` bytes were taken so far, `flushed` of them are durable."""

    def __init__(self, store: Store, upload_id: UUID) -> None:
        """Open and lock it, made if it is not there; raises UploadBusy."""
        self._store = store
        self._id = upload_id
        self._place = store.root / UPLOADS / str(upload_id)
        self._gathered = bytearray()
        self._sha256 = hashlib.sha256()
        self._seen = 0  # how many of the first bytes went through the hash
        self._named = False  # durably, by us
        self._written = 0
        self.size = 0
        self.flushed = 0
        self._fd = self._open()

    async def go_on_at(self, received: int) -> None:
        """Keep the first `received` bytes and write from there; raises UploadGone when they are not there."""
        await self._store.in_thread(self._cut, received)

    async def write(self, chunk: bytes) -> None:
        """Take more bytes; raises NoSpace when the disk is full."""
        self.size += len(chunk)
        self._gathered += chunk
        if len(self._gathered) >= _BLOCK:
            gathered, self._gathered = self._gathered, bytearray()
            await self._store.in_thread(self._put, gathered)

    async def flush(self) -> None:
        """Make all that was taken durable."""
        await self._store.in_thread(self._flush)

    async def keep(self) -> Received:
        """Make the whole file a record's source, durably; what is returned may be written into a row."""
        while self._seen < self.size:  # by parts: nobody waits for a thread that reads for minutes
            await self._store.in_thread(self._look_on)
        await self._store.in_thread(self._give_name)
        path = self._store.source(self._id).relative_to(self._store.root)
        return Received(path=str(path), size=self.size, sha256=self._sha256.digest())

    async def forget(self) -> None:
        """Take the first name away, once a row names the second."""
        await self._store.in_thread(self._place.unlink, True)  # noqa: FBT003 - `missing_ok`, crossed by place

    async def remove(self) -> None:
        """Take both names away: only when it is certain that there is no record, and never will be."""
        await self._store.in_thread(remove_upload, self._store, self._id)

    def close(self) -> None:
        """Let go of the file and its lock."""
        os.close(self._fd)

    def _open(self) -> int:
        with telling_full_disks(self._store.root):
            while True:
                fd = os.open(self._place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if _is_at(fd, self._place):  # and was not removed before we had locked it
                        return fd
                except BlockingIOError:
                    os.close(fd)
                    raise UploadBusy("another process writes this upload") from None
                os.close(fd)

    def _cut(self, received: int) -> None:
        if os.fstat(self._fd).st_size < received:
            raise UploadGone(f"the store lacks bytes of the upload {self._id} that were counted")
        os.ftruncate(self._fd, received)
        os.lseek(self._fd, received, os.SEEK_SET)
        self.size = self._written = self.flushed = received
        self._gathered.clear()
        if received < self._seen:
            self._seen, self._sha256 = 0, hashlib.sha256()

    def _put(self, gathered: bytearray) -> None:
        if self._seen == self.size - len(gathered) - len(self._gathered):
            self._sha256.update(gathered)
            self._seen += len(gathered)
        put_block(self._store, self._fd, gathered)
        self._written += len(gathered)

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, bytearray()
        self._put(gathered)
        with telling_full_disks(self._store.root):
            os.fsync(self._fd)
            if not self._named:
                fsync_folder(self._place.parent)
                self._named = True
        self.flushed = self._written

    def _look_on(self) -> None:
        if self._gathered:
            self._flush()
            return
        block = os.pread(self._fd, _READ_BLOCK, self._seen)
        if not block:
            raise OSError(errno.EIO, f"the upload {self._id} ends before its end")
        self._sha256.update(block)
        self._seen += len(block)

    def _give_name(self) -> None:
        self._flush()
        source = self._store.source(self._id)
        with telling_full_disks(self._store.root):
            source.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                os.link(self._place, source)
            except FileExistsError:
                if not _is_at(self._fd, source):
                    raise
            fsync_folder(source.parent)
            fsync_folder(source.parent.parent)


@asynccontextmanager
async def resumed(store: Store, upload_id: UUID) -> AsyncIterator[UploadFile]:
    """Have an upload's file open and locked for the block; raises UploadBusy."""
    file = await store.in_thread(UploadFile, store, upload_id)
    try:
        yield file
    finally:
        with trio.CancelScope(shield=True):
            await store.in_thread(file.close)


def remove_upload(store: Store, upload_id: UUID) -> None:
    """Remove an upload that certainly is no record, under either name; what is not there is no fault."""
    folder = store.record_folder(upload_id)
    (folder / SOURCE).unlink(missing_ok=True)
    if folder.exists():  # else it never got its second name
        folder.rmdir()
    (store.root / UPLOADS / str(upload_id)).unlink(missing_ok=True)


def _is_at(fd: int, place: Path) -> bool:
    ours = os.fstat(fd)
    try:
        theirs = place.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)

"""Where the bytes live."""

import hashlib
import os
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import trio

from storage.audio import SOURCE, Store
from storage.errors import NoSpace
from storage.ids import new_id


@pytest.fixture
def plain(tmp_path: Path) -> Store:
    """A store that no database knows: files alone."""
    store = Store(id=uuid4(), root=tmp_path)
    store.prepare()
    return store


def files_in(store: Store) -> list[str]:
    """Return every path under the store's root but its own folders."""
    return sorted(
        str(path.relative_to(store.root)) for path in store.root.rglob("*") if path.parent != store.root
    )


async def received(store: Store, content: bytes) -> UUID:
    """Receive and keep bytes, in pieces."""
    record_id = new_id()
    async with store.receive(record_id) as receiving:
        for start in range(0, len(content), 64_000):
            await receiving.write(content[start : start + 64_000])
        await receiving.keep()
    return record_id


async def test_kept_bytes_are_whole_and_named_by_us(plain: Store) -> None:
    """What was written in pieces lies under the record's id, with its size and hash told."""
    record_id = new_id()
    content = os.urandom(700_000)
    async with plain.receive(record_id) as receiving:
        for start in range(0, len(content), 64_000):
            await receiving.write(content[start : start + 64_000])
        received = await receiving.keep()
    assert received.path == f"records/{record_id}/{SOURCE}"
    assert (received.size, received.sha256) == (len(content), hashlib.sha256(content).digest())
    assert plain.path(received.path).read_bytes() == content
    assert files_in(plain) == [f"records/{record_id}", received.path]


async def test_keeping_flushes_the_bytes_before_their_name(
    plain: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is flushed before it gets its name, and its folders after: in this order."""
    done: list[str] = []
    record_id = new_id()
    fsync, rename = os.fsync, Path.rename

    def noted_fsync(fd: int) -> None:
        done.append(f"fsync {Path(f'/proc/self/fd/{fd}').readlink().relative_to(plain.root)}")
        fsync(fd)

    def noted_rename(self: Path, target: Path) -> Path:
        done.append("rename")
        return rename(self, target)

    async with plain.receive(record_id) as receiving:
        await receiving.write(b"x")
        monkeypatch.setattr(os, "fsync", noted_fsync)
        monkeypatch.setattr(Path, "rename", noted_rename)
        await receiving.keep()
    assert done == [
        f"fsync incoming/{record_id}",
        "rename",
        f"fsync records/{record_id}",
        "fsync records",
    ]


@pytest.mark.parametrize("written", [0, 10, 300_000])
async def test_what_was_not_kept_leaves_nothing(plain: Store, written: int) -> None:
    """Leaving without `keep`, by an error or not, removes the file."""
    with pytest.raises(RuntimeError):  # noqa: PT012 - leaving by an error is what is tested
        async with plain.receive(new_id()) as receiving:
            await receiving.write(b"x" * written)
            raise RuntimeError
    async with plain.receive(new_id()) as receiving:
        await receiving.write(b"x" * written)
    assert files_in(plain) == []


async def test_a_cancel_in_the_middle_leaves_nothing(plain: Store) -> None:
    """A receiver that is cancelled cleans up although every await of its would be cancelled too."""
    with trio.CancelScope() as scope:
        async with plain.receive(new_id()) as receiving:
            await receiving.write(b"x" * 300_000)
            scope.cancel()
            await receiving.write(b"x" * 300_000)
    assert scope.cancelled_caught
    assert files_in(plain) == []


async def test_abandoned_bytes_go(plain: Store) -> None:
    """Kept bytes that certainly have no row can be let go, with their folder."""
    async with plain.receive(new_id()) as receiving:
        await receiving.write(b"x")
        await receiving.keep()
        receiving.abandon()
    assert files_in(plain) == []


async def test_the_reserve_stays_free(tmp_path: Path) -> None:
    """A disk with less than the reserve left is told as full, and nothing stays of the file."""
    store = Store(id=uuid4(), root=tmp_path, reserve=2**60)
    store.prepare()
    for size in (10, 300_000):  # few bytes are written by `keep`, many earlier
        with pytest.raises(NoSpace, match="full"):
            await received(store, b"x" * size)
    assert files_in(store) == []


@pytest.mark.root
async def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """A disk that really is full is told as such, and nothing stays of the file."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    mounting = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)]
    if (await trio.run_process(mounting, check=False, capture_stderr=True)).returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        store = Store(id=uuid4(), root=tmp_path, reserve=0)
        store.prepare()
        with pytest.raises(NoSpace, match="full"):
            await received(store, b"x" * 2_000_000)
        assert files_in(store) == []
    finally:
        with trio.CancelScope(shield=True):
            await trio.run_process(["umount", str(tmp_path)])


@pytest.mark.parametrize("relative", ["/etc/passwd", "../x", "records/../../x", "records/id/out/x"])
def test_a_path_never_leaves_the_root(plain: Store, relative: str) -> None:
    """Absolute paths, steps upwards and links to elsewhere are refused."""
    (plain.root / "records" / "id").mkdir()
    (plain.root / "records" / "id" / "out").symlink_to("/etc")
    with pytest.raises(ValueError, match="inside the store"):
        plain.path(relative)


async def test_attempts_have_private_folders(plain: Store) -> None:
    """An attempt's folder is its own, 0700, and making it twice is no error."""
    record_id, token = new_id(), uuid4()
    with pytest.raises(FileNotFoundError):
        await plain.attempt_folder(record_id, token)
    plain.record_folder(record_id).mkdir()
    folder = await plain.attempt_folder(record_id, token)
    assert folder == await plain.attempt_folder(record_id, token)
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_only_folders_of_gone_attempts_are_swept(plain: Store) -> None:
    """The source and the folders to keep stay, whatever else is there goes."""
    record_id = await received(plain, b"x")
    tokens: list[UUID] = [uuid4() for _ in range(3)]
    for token in tokens:
        folder = await plain.attempt_folder(record_id, token)
        (folder / "audio.w64").write_bytes(b"y")
    await plain.sweep_attempts(record_id, {str(tokens[0]), str(tokens[2])})
    left = {path.name for path in plain.record_folder(record_id).iterdir()}
    assert left == {SOURCE, str(tokens[0]), str(tokens[2])}
    assert plain.source(record_id).read_bytes() == b"x"

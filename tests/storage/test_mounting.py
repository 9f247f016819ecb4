"""Mounting a store."""

import os
from pathlib import Path
from uuid import uuid4

import pytest
import trio

from storage.audio import Store
from storage.database import Database, open_database
from storage.errors import StateFolderRefused
from storage.migrate import migrate
from storage.mounting import mount_store
from tests.making import put


def seen(root: Path) -> dict[str, bytes]:
    """Return every file under a root with its content."""
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def test_an_empty_folder_becomes_a_store_and_stays_it(database: Database, tmp_path: Path) -> None:
    """The second mount finds the first one's store; a disk's own folder does not count as content."""
    (tmp_path / "lost+found").mkdir()
    made = await mount_store(database, tmp_path)
    assert (await mount_store(database, tmp_path)).id == made.id
    assert await put(database, "SELECT id FROM stores") == [(made.id,)]


async def test_many_who_mount_at_once_get_one_store(database: Database, tmp_path: Path) -> None:
    """Daemons that start together on one empty folder agree on its id."""
    ids = set()

    async def mount() -> None:
        ids.add((await mount_store(database, tmp_path)).id)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(mount)
    assert len(ids) == 1
    assert list(seen(tmp_path)) == [str(tmp_path / "store.json")]


async def test_a_crash_before_the_file_is_no_obstacle(database: Database, tmp_path: Path) -> None:
    """A draft that a killed process left does not make the folder somebody else's."""
    (tmp_path / f"store.json.{uuid4()}").write_text("{")
    assert (await mount_store(database, tmp_path)).root == tmp_path


async def test_a_folder_with_other_files_is_refused(database: Database, tmp_path: Path) -> None:
    """Somebody's holiday pictures are no store, and stay as they are."""
    (tmp_path / "beach.jpg").write_bytes(b"sun")
    before = seen(tmp_path)
    with pytest.raises(StateFolderRefused, match=r"beach\.jpg.*choose an empty folder"):
        await mount_store(database, tmp_path)
    assert seen(tmp_path) == before
    assert os.listdir(tmp_path) == ["beach.jpg"]  # noqa: PTH208 - names are all that is asked


async def test_s_s6_a_foreign_store_is_refused(store: Store, empty_dsn: str) -> None:
    """A store of another installation is refused with a sentence, and nothing in it was changed."""
    before = seen(store.root)
    async with open_database(
        empty_dsn, pool_size=2, call_seconds=20, statement_seconds=10, listen=True
    ) as another:
        await migrate(another)
        with pytest.raises(StateFolderRefused, match=r"belongs to installation .* set the state folder"):
            await mount_store(another, store.root)
    assert seen(store.root) == before


async def test_a_store_the_database_forgot_is_refused(store: Store, database: Database) -> None:
    """A database restored from before the store was made does not take it over."""
    await put(database, "DELETE FROM stores")
    with pytest.raises(StateFolderRefused, match="does not know the store"):
        await mount_store(database, store.root)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"store": "x", "installation": "y"}', b"[1]"])
async def test_a_broken_identity_is_refused(database: Database, tmp_path: Path, content: bytes) -> None:
    """A `store.json` that is not ours to read is told in a sentence, never overwritten."""
    (tmp_path / "store.json").write_bytes(content)
    with pytest.raises(StateFolderRefused, match="does not say whose store this is"):
        await mount_store(database, tmp_path)
    assert (tmp_path / "store.json").read_bytes() == content

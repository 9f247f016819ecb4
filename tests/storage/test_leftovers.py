"""What a crash left in a store."""

import fcntl
import os
import time
from pathlib import Path
from uuid import UUID

from storage.audio import Store
from storage.database import Database
from storage.ids import new_id
from storage.leftovers import QUARANTINE_FOR, UNFINISHED_AFTER, UNKNOWN_AFTER, sweep_leftovers
from tests.making import a_record, an_account


def aged(path: Path, seconds: float) -> Path:
    """Make a path look so old."""
    then = time.time() - seconds - 1
    os.utime(path, (then, then))
    return path


def unknown_record(store: Store, place: str, seconds: float) -> UUID:
    """Leave a folder with bytes that no row knows."""
    record_id = new_id()
    folder = store.root / place / str(record_id)
    folder.mkdir()
    (folder / "source").write_bytes(b"x")
    aged(folder, seconds)
    return record_id


async def test_unfinished_files_go_unless_somebody_is_at_them(database: Database, store: Store) -> None:
    """A file without an owner goes; one that is locked, or was made just now, stays."""
    incoming = store.root / "incoming"
    left = incoming / str(new_id())
    left.write_bytes(b"x")
    aged(left, UNFINISHED_AFTER)
    young = incoming / str(new_id())
    young.write_bytes(b"x")
    held = incoming / str(new_id())
    held.write_bytes(b"x")
    with held.open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        aged(held, UNFINISHED_AFTER)
        await sweep_leftovers(database, store)
        assert set(incoming.iterdir()) == {young, held}


async def test_a_receiver_at_work_is_left_alone(database: Database, store: Store) -> None:
    """A second daemon that starts on the same store takes nothing from an upload under way, however slow."""
    record_id = new_id()
    async with store.receive(record_id) as receiving:
        await receiving.write(b"x" * 300_000)
        aged(store.root / "incoming" / str(record_id), UNFINISHED_AFTER)
        await sweep_leftovers(database, store)
        received = await receiving.keep()
    assert store.path(received.path).stat().st_size == 300_000


async def test_unknown_bytes_are_put_aside_only_after_days(database: Database, store: Store) -> None:
    """No row and days old: aside, whole; no row and younger, or with a row: where it was."""
    account, _ = await an_account(database)
    known = await a_record(database, store, account)
    aged(store.record_folder(known), UNKNOWN_AFTER)
    old = unknown_record(store, "records", UNKNOWN_AFTER)
    young = unknown_record(store, "records", UNKNOWN_AFTER - 3600)
    await sweep_leftovers(database, store)
    assert {path.name for path in (store.root / "records").iterdir()} == {str(known), str(young)}
    assert (store.root / "quarantine" / str(old) / "source").read_bytes() == b"x"


async def test_quarantine_ends_by_a_row_or_after_its_days(database: Database, store: Store) -> None:
    """What a restored row knows comes back; what nobody asked for in all the days goes."""
    account, _ = await an_account(database)
    known = await a_record(database, store, account)
    store.record_folder(known).rename(store.root / "quarantine" / str(known))
    aged(store.root / "quarantine" / str(known), QUARANTINE_FOR)
    unknown_record(store, "quarantine", QUARANTINE_FOR)
    waiting = unknown_record(store, "quarantine", QUARANTINE_FOR - 3600)
    await sweep_leftovers(database, store)
    assert [path.name for path in (store.root / "quarantine").iterdir()] == [str(waiting)]
    assert store.source(known).exists()


async def test_names_that_are_not_ours_stay(database: Database, store: Store) -> None:
    """A folder whose name is no id of ours is nobody's business here."""
    strange = store.root / "records" / "notes"
    strange.mkdir()
    aged(strange, UNKNOWN_AFTER)
    await sweep_leftovers(database, store)
    assert strange.exists()

"""What is over goes, and nothing else."""

import os
import time
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from storage.audio import Store
from storage.database import Database
from storage.ids import new_id
from storage.leftovers import UNKNOWN_AFTER
from storage.removals import DELETED_FOR
from storage.tidying import tidy
from storage.upload_files import UploadBusy, UploadFile, resumed
from storage.uploads import Begun, begin_upload
from tests.making import a_record, an_account, put


async def begun(database: Database, store: Store, account_id: UUID) -> UUID:
    """Begin an upload of nine bytes, one of which came."""
    upload = Begun(
        id=new_id(),
        account_id=account_id,
        store_id=store.id,
        bytes=9,
        metadata="",
        options={},
        kept_seconds=60,
    )
    await begin_upload(database, upload, 5)
    async with resumed(store, upload.id) as file:
        await file.write(b"x")
        await file.flush()
    return upload.id


def names(store: Store, folder: str) -> set[str]:
    """Return what is in a folder of the store."""
    return {path.name for path in (store.root / folder).iterdir()}


async def test_an_upload_goes_when_its_lease_is_over(database: Database, store: Store) -> None:
    """With its bytes, also when a crash left them under both names; one that has time left stays."""
    anna, _ = await an_account(database)
    over, linked, kept = [await begun(database, store, anna.id) for _ in range(3)]
    async with resumed(store, linked) as file:
        await file.go_on_at(0)
        await file.write(b"123456789")
        await file.keep()
    with capture_logs() as said:
        await tidy(database, store)
        assert said == []
        for upload_id in (over, linked):
            await put(database, "UPDATE uploads SET expires_at = now() WHERE id = %s", upload_id)
        await tidy(database, store)
    assert {entry["record"] for entry in said if entry["event"] == "upload.expired"} == {over, linked}
    assert names(store, "uploads") == {str(kept)}
    assert names(store, "records") == set()
    assert await put(database, "SELECT id FROM uploads") == [(kept,)]


async def test_a_finished_upload_takes_nothing_of_its_record_with_it(
    database: Database, store: Store
) -> None:
    """The record and its bytes stay when the upload is forgotten, and when its first name was left behind."""
    anna, _ = await an_account(database)
    record_id = await a_record(database, store, anna)
    os.link(store.source(record_id), store.root / "uploads" / str(record_id))
    await put(
        database,
        """INSERT INTO uploads
            (id, account_id, store_id, expires_at, bytes, received, metadata, options, finished_at)
        VALUES (%s, %s, %s, now() + interval '1 hour', 9, 9, '', '{}', now())""",
        record_id,
        anna.id,
        store.id,
    )
    long_ago = time.time() - UNKNOWN_AFTER - 1
    os.utime(store.root / "uploads" / str(record_id), (long_ago, long_ago))
    await tidy(database, store)
    assert names(store, "uploads") == set()
    await put(database, "UPDATE uploads SET expires_at = now()")
    await tidy(database, store)
    assert await put(database, "SELECT 1 FROM uploads") == []
    assert store.source(record_id).exists()
    assert await put(database, "SELECT id FROM records") == [(record_id,)]


async def test_a_stray_upload_goes_after_days_and_never_one_that_is_written(
    database: Database, store: Store
) -> None:
    """Nobody was told that it is kept; what another process writes is locked."""
    held, stray, new = [store.root / "uploads" / str(new_id()) for _ in range(3)]
    odd = store.root / "uploads" / "odd"
    writing = UploadFile(store, UUID(held.name))
    for place in (held, stray, new, odd):
        place.touch()
    long_ago = time.time() - UNKNOWN_AFTER - 1
    for place in (held, stray, odd):
        os.utime(place, (long_ago, long_ago))
    await tidy(database, store)
    assert names(store, "uploads") == {held.name, new.name, "odd"}
    with pytest.raises(UploadBusy):
        UploadFile(store, UUID(held.name))
    writing.close()
    await tidy(database, store)
    assert names(store, "uploads") == {new.name, "odd"}


async def test_a_deleted_record_goes_after_its_days(database: Database, store: Store) -> None:
    """From the database and from the disk, with a line in the log; one deleted yesterday can be had back."""
    anna, _ = await an_account(database)
    old, recent, alive = [await a_record(database, store, anna) for _ in range(3)]
    for record_id, days in ((old, DELETED_FOR / 86400 + 0.01), (recent, 6.9)):
        await put(
            database,
            "UPDATE records SET deleted_at = now() - make_interval(secs => %s) WHERE id = %s",
            days * 86400,
            record_id,
        )
    await put(
        database,
        """UPDATE records SET stop_code = 'silent', stop_reason = 'x', stopped_at = now(), stopped_by = 'x'
        WHERE id = %s""",
        old,
    )
    with capture_logs() as said:
        await tidy(database, store)
    [entry] = said
    assert (entry["event"], entry["record"], entry["owner"], entry["code"]) == (
        "record.purged",
        old,
        "anna",
        "silent",
    )
    assert {row[0] for row in await put(database, "SELECT id FROM records")} == {recent, alive}
    assert names(store, "records") == {str(recent), str(alive)}
    assert await put(database, "SELECT 1 FROM removals") == []


async def test_bytes_that_cannot_be_removed_are_tried_again(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a warning; and bytes of which nobody said that they may go stay."""
    anna, _ = await an_account(database)
    one, two = await a_record(database, store, anna), await a_record(database, store, anna)
    await put(database, "INSERT INTO removals SELECT id, store_id FROM records WHERE id = %s", one)
    await put(database, "DELETE FROM records")

    def failing(_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched, capture_logs() as said:
        patched.setattr("storage.removals.shutil.rmtree", failing)
        await tidy(database, store)
    assert [(entry["event"], entry["record"]) for entry in said] == [("removal.failed", one)]
    await tidy(database, store)
    assert names(store, "records") == {str(two)}

"""A job finds or makes the record of each recording and brings the texts out in order."""

import os
import select
from pathlib import Path
from uuid import UUID

import pytest
import trio

from daemon.cli.job import Job
from daemon.cli.outputs import Outputs
from daemon.cli.person import person
from daemon.cli.progress import Lines
from daemon.cli.sending import Site
from daemon.intake.options import Options
from storage.audio import Store
from storage.claim import NotFound
from storage.database import Database
from storage.errors import Refused
from storage.readiness import read_readiness
from storage.record import StopCode
from tests.making import an_account, change, put
from tests.waiting import until

DONE = "milestone = 'done', lane = NULL, decoded_seconds = 5, recognised_text = 'x'"
STOPPED = "stop_code = 'not_media', stop_reason = 'no\nformat', stopped_at = now(), stopped_by = 'host:1'"


@pytest.fixture
def site(database: Database, store: Store) -> Site:
    """Where the recordings of these tests go; nobody works there but the test."""
    return Site(database=database, store=store, lane="convert")


def recordings(folder: Path, *contents: str) -> list[Path]:
    """Return files of these contents, named a.wav, b.wav, ..."""
    paths = [folder / f"{'abcdef'[number]}.wav" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    return paths


def job_of(
    paths: list[Path], *, form: str = "txt", places: list[Path] | None = None, language: str = ""
) -> Job:
    """Return a job for these files."""
    outputs = Outputs(tuple(places) if places else (None,) * len(paths))
    lines = Lines([path.name for path in paths])
    return Job(paths, outputs, form, Options(asked_language=language or None), lines)


async def records(site: Site) -> dict[str, UUID]:
    """Return the records there are, by file name."""
    return dict(await put(site.database, "SELECT filename, id FROM records ORDER BY created_at"))


async def known(site: Site, count: int) -> dict[str, UUID]:
    """Wait until there are so many records."""
    with trio.fail_after(10):
        while len(found := await records(site)) < count:  # noqa: ASYNC110 - the database sets no event
            await trio.sleep(0.01)
    return found


async def finish(site: Site, record_id: UUID, text: str) -> None:
    """Let a record be done, with a text."""
    columns = "record_id, slice, number, start_seconds, end_seconds, text"
    insert = f"INSERT INTO segments ({columns}) VALUES (%s, 0, 0, 0, 1, %s)"  # noqa: S608 - names of columns
    await put(site.database, insert, record_id, text)
    await change(site.database, record_id, DONE)


async def test_texts_come_in_the_order_of_the_command_line(
    site: Site, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Whichever is ready first; an empty line stands between two of them."""
    job = job_of(recordings(tmp_path, "one", "two"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run, site)
        made = await known(site, 2)
        await finish(site, made["b.wav"], "Second.")
        await trio.sleep(0.7)
        assert capsysbinary.readouterr().out == b""
        await finish(site, made["a.wav"], "Первая.")
    assert capsysbinary.readouterr().out.decode() == "Первая.\n\nSecond.\n"
    assert job.is_done
    assert job.faults == []


async def test_a_reader_who_takes_their_time_holds_up_no_other_task(site: Site, tmp_path: Path) -> None:
    """Leases are renewed while a text waits in a full pipe; it arrives whole."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    job = job_of(recordings(tmp_path, "one"), places=[fifo])
    text = "word " * 50_000
    got = b""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(job.run, site)
            await finish(site, (await known(site, 1))["a.wav"], text)
            await until(lambda: bool(select.select([reading], [], [], 0)[0]))
            await trio.sleep(0.1)  # would not come back if the loop stood still
            while not job.is_done:
                await trio.sleep(0.01)
                got += read_all(reading)
    got += read_all(reading)
    os.close(reading)
    assert got.decode().split() == text.split()


def read_all(descriptor: int) -> bytes:
    """Return what can be read without waiting."""
    got = b""
    try:
        while part := os.read(descriptor, 65536):
            got += part
    except BlockingIOError:
        return got
    return got


async def test_the_same_bytes_and_options_are_the_same_record(
    site: Site, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Under another name too; what is done is printed at once, and no second copy is kept."""
    (path,) = recordings(tmp_path, "one")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job_of([path]).run, site)
        made = await known(site, 1)
        nursery.cancel_scope.cancel()
    await finish(site, made["a.wav"], "Text.")
    renamed = path.rename(tmp_path / "renamed.wav")
    with trio.fail_after(2):
        await job_of([renamed, renamed]).run(site)
    assert capsysbinary.readouterr().out == b"Text.\n\nText.\n"
    assert await records(site) == made
    kept = site.store.root / "records"
    assert [entry.name for entry in kept.iterdir()] == [str(made["a.wav"])]


async def test_another_language_is_another_record(site: Site, tmp_path: Path) -> None:
    """What changes the text is never answered from an older record."""
    (path,) = recordings(tmp_path, "one")
    other = tmp_path / "b.wav"
    other.write_text("one")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job_of([path]).run, site)
        await known(site, 1)
        nursery.start_soon(job_of([other], language="ru").run, site)
        await known(site, 2)
        nursery.cancel_scope.cancel()
    asked = await put(site.database, "SELECT asked_language FROM records ORDER BY created_at")
    assert asked == [(None,), ("ru",)]


async def test_two_jobs_at_once_share_a_record(site: Site, tmp_path: Path) -> None:
    """Of several commands with one recording only one makes its record."""
    (path,) = recordings(tmp_path, "one" * 100_000)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(job_of([path]).run, site)
        made = await known(site, 1)
        await trio.sleep(0.5)
        await finish(site, made["a.wav"], "Text.")
    assert await put(site.database, "SELECT count(*) FROM records") == [(1,)]
    assert len(list((site.store.root / "records").iterdir())) == 1


async def test_a_stopped_record_tells_the_cause_and_the_way_on(site: Site, tmp_path: Path) -> None:
    """The sentence for a person, the full reason, the command; the other recordings go on."""
    job = job_of(recordings(tmp_path, "one", "two"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run, site)
        made = await known(site, 2)
        await change(site.database, made["a.wav"], STOPPED)
        await finish(site, made["b.wav"], "Text.")
    assert job.is_done
    (told,) = job.faults
    assert told.splitlines() == [
        f"{tmp_path}/a.wav: stopped at created: {StopCode.NOT_MEDIA.message}",
        "  reason: no format",
        f"  lift the stop with: rubezh records lift {made['a.wav']}",
    ]
    again = job_of([tmp_path / "a.wav"])
    await again.run(site)
    assert again.faults == job.faults


async def test_what_a_person_should_know_of_a_recording_is_told_and_is_no_fault(
    site: Site, tmp_path: Path
) -> None:
    """Nothing said, an end that is missing, pieces left out: the text is there all the same."""
    job = job_of(recordings(tmp_path, "one", "two", "three"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run, site)
        made = await known(site, 3)
        await change(site.database, made["b.wav"], "audio_warnings = '{cut_short,bad_packets}'")
        await finish(site, made["b.wav"], "Half a text.")
        await finish(site, made["c.wav"], "Text.")
        await trio.sleep(0.7)
        await change(site.database, made["a.wav"], DONE.replace("'x'", "''"))
    assert job.faults == []
    assert job.cautions == [
        f"{tmp_path}/a.wav: no words were found in it",
        f"{tmp_path}/b.wav: it seems cut off: it holds less than it declares",
        f"{tmp_path}/b.wav: damaged pieces of it were left out",
    ]


async def test_a_record_that_is_deleted_meanwhile_is_not_waited_for(site: Site, tmp_path: Path) -> None:
    """The way to have it back is told; the same command afterwards begins a new record."""
    paths = recordings(tmp_path, "one")
    job = job_of(paths)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run, site)
        made = await known(site, 1)
        await change(site.database, made["a.wav"], "deleted_at = now()")
    assert "was deleted meanwhile" in job.faults[0]
    assert f"rubezh records undelete {made['a.wav']}" in job.faults[0]


async def test_a_file_that_goes_away_holds_nobody_up(
    site: Site, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """It is told, and the others have their texts."""
    paths = recordings(tmp_path, "one", "two")
    job = job_of(paths)
    paths[0].unlink()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run, site)
        await finish(site, (await known(site, 1))["b.wav"], "Text.")
    assert job.faults == [f"{tmp_path}/a.wav: cannot be read (No such file or directory)"]
    assert capsysbinary.readouterr().out.endswith(b"Text.\n")


async def test_a_copy_that_is_interrupted_leaves_nothing(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither bytes nor a row; the next run begins anew."""
    (path,) = recordings(tmp_path, "x" * 3_000_000)
    job = job_of([path])
    with trio.CancelScope() as scope:

        def interrupt(_: Lines, __: int, share: float) -> None:
            if share == 1.0 and list((site.store.root / "incoming").iterdir()):
                scope.cancel()

        monkeypatch.setattr(Lines, "receiving", interrupt)
        await job.run(site)
    assert scope.cancelled_caught
    assert await records(site) == {}
    assert [list((site.store.root / name).iterdir()) for name in ("incoming", "records")] == [[], []]


async def test_a_place_that_fails_is_told_and_the_others_are_filled(site: Site, tmp_path: Path) -> None:
    """The text stays in the database; the command for it is the same."""
    paths = recordings(tmp_path, "one", "two")
    lost = tmp_path / "gone" / "a.srt"
    job = job_of(paths, form="srt", places=[lost, tmp_path / "b.srt"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.run, site)
        made = await known(site, 2)
        for record_id in made.values():
            await finish(site, record_id, "Text.")
    assert job.faults == [f"{lost}: cannot be written (No such file or directory); choose another -o"]
    assert (tmp_path / "b.srt").read_text() == "1\n00:00:00,000 --> 00:00:01,000\nText.\n"


async def test_the_recordings_belong_to_the_user_of_the_system(site: Site, tmp_path: Path) -> None:
    """Their name is made from bytes that may be no text; a disabled account gets nothing done."""
    path = tmp_path / "a\udcff\x1b.wav"
    path.write_text("one")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job_of([path]).run, site)
        (name,) = await known(site, 1)
        nursery.cancel_scope.cancel()
    assert name == "a\ufffd\x1b.wav"
    owners = await put(site.database, "SELECT name FROM records JOIN accounts ON owner_id = accounts.id")
    assert owners == [(person(),)]
    stranger, _ = await an_account(site.database, "stranger")
    (record_id,) = (await records(site)).values()
    assert isinstance(await read_readiness(site.database, record_id, stranger.id), NotFound)
    await put(site.database, "UPDATE accounts SET disabled_at = now()")
    with pytest.raises(Refused, match="your account is disabled; open it with: rubezh account enable"):
        await job_of([path]).run(site)

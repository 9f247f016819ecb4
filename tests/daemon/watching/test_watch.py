"""The watch folder, on a real database and a real store."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from daemon.intake.doors import Doors
from daemon.intake.polls import Polls
from daemon.settings import IntakeSettings, WatchSettings
from daemon.watching import Watch, folder, watch
from storage.accounts import add_account, disable_account
from storage.audio import Store
from storage.database import Database
from storage.errors import DatabaseUnavailable
from tests.making import LANE, put
from tests.waiting import until

LARGEST = 1_000_000


class Rig:
    """A watch folder with a folder of anna's, and all that stands behind it."""

    def __init__(self, database: Database, store: Store, root: Path) -> None:
        self.database, self.store, self.root = database, store, root
        self.anna = root / "anna"
        self.anna.mkdir()
        self.is_stopping = False
        self.doors = Doors(
            database=database,
            store=store,
            lane=LANE,
            settings=IntakeSettings(largest_bytes=LARGEST),
            stopping=lambda: self.is_stopping,
            polls=Polls(database),
        )
        self.watch = Watch(
            doors=self.doors,
            settings=WatchSettings(folder=str(root), still_seconds=0.0, every_seconds=0.01),
        )

    async def look(self) -> list[dict[str, Any]]:
        """Look once; return what was logged of the folder."""
        with structlog.testing.capture_logs() as logged:
            await self.watch.look(self.root)
        return [dict(entry) for entry in logged if entry["event"].startswith("watch.")]

    async def records(self) -> list[tuple[Any, ...]]:
        """Return name, size and source of every record, the oldest first."""
        return list(
            await put(self.database, "SELECT filename, source_bytes, source_path FROM records ORDER BY id")
        )

    def lying(self) -> list[str]:
        """Return all that lies in anna's folder."""
        return sorted(str(path.relative_to(self.anna)) for path in self.anna.rglob("*") if path.is_file())


@pytest.fixture
async def rig(database: Database, store: Store, tmp_path: Path) -> Rig:
    """Have a rig of anna's."""
    await add_account(database, "anna")
    root = tmp_path / "watch"
    root.mkdir()
    return Rig(database, store, root)


async def test_a_file_becomes_a_record_and_is_moved(rig: Rig) -> None:
    """Its bytes are in the store, its name is the record's, and it lies in done."""
    (rig.anna / "беседа.mp3").write_bytes(b"speech" * 100_000)
    (told,) = await rig.look()
    assert told["event"] == "watch.taken"
    ((name, size, source),) = await rig.records()
    assert (name, size) == ("беседа.mp3", 600_000)
    assert rig.store.path(source).read_bytes() == b"speech" * 100_000
    assert rig.lying() == ["done/беседа.mp3"]
    assert await rig.look() == []


async def test_a_file_that_grows_waits(rig: Rig) -> None:
    """Also one that grows while it is read: nothing of it is kept, and it has its turn later."""
    talk = rig.anna / "talk.mp3"
    rig.watch.settings = WatchSettings(folder=str(rig.root), still_seconds=60.0)
    talk.write_bytes(b"a")
    assert await rig.look() == []
    rig.watch.settings = WatchSettings(folder=str(rig.root), still_seconds=0.0)
    with grown_while_read(talk):
        assert await rig.look() == []
    assert await rig.records() == []
    assert list((rig.store.root / "incoming").iterdir()) == []
    await rig.look()
    assert [(name, size) for name, size, _ in await rig.records()] == [("talk.mp3", 5)]


@contextmanager
def grown_while_read(path: Path) -> Iterator[None]:
    """Append to a file just before its first bytes are read."""
    real = os.read

    def read(fd: int, size: int) -> bytes:
        if path.stat().st_size == 1:
            with path.open("ab") as file:
                file.write(b"more")
        return real(fd, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", read)
        yield


async def test_the_same_content_is_one_record(rig: Rig) -> None:
    """Under another name, put there again, or left there by a move that failed."""
    for name in ("one.mp3", "two.mp3", "one.mp3"):
        (rig.anna / name).write_bytes(b"the same")
        await rig.look()
    assert [name for name, _, _ in await rig.records()] == ["one.mp3"]
    assert rig.lying() == ["done/one (2).mp3", "done/one.mp3", "done/two.mp3"]
    assert len(list((rig.store.root / "records").iterdir())) == 1


async def test_s_i29_a_break_between_record_and_move_makes_no_second_record(rig: Rig) -> None:
    """The next daemon finds the file where it was."""
    (rig.anna / "talk.mp3").write_bytes(b"speech")

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch, "move", fails)
        (told,) = await rig.look()
        assert (told["event"], told["log_level"]) == ("watch.stuck", "warning")
        assert await rig.look() == []  # told once, and not read again
    assert rig.lying() == ["talk.mp3"]
    again = Rig.__new__(Rig)
    again.__dict__.update(rig.__dict__, watch=Watch(doors=rig.doors, settings=rig.watch.settings))
    (told,) = await again.look()
    assert told["event"] == "watch.taken"
    assert len(await rig.records()) == 1
    assert rig.lying() == ["done/talk.mp3"]


@pytest.mark.parametrize(("size", "said"), [(0, "empty"), (LARGEST + 1, "1000000")])
async def test_what_can_be_no_record_is_moved_to_failed(rig: Rig, size: int, said: str) -> None:
    """With the reason beside it, for whoever put it there."""
    (rig.anna / "talk.mp3").write_bytes(b"x" * size)
    (told,) = await rig.look()
    assert told["event"] == "watch.refused"
    assert await rig.records() == []
    assert rig.lying() == ["failed/talk.mp3", "failed/talk.mp3.txt"]
    assert said in (rig.anna / "failed" / "talk.mp3.txt").read_text()


async def test_what_cannot_be_now_is_left_and_told_once(rig: Rig) -> None:
    """The queue is full for this account: later it is taken."""
    (rig.anna / "one.mp3").write_bytes(b"x" * 900_000)
    await rig.look()
    rig.doors.settings = IntakeSettings(queued_hours=0.01)
    (rig.anna / "two.mp3").write_bytes(b"y")
    (told,) = await rig.look()
    assert told["event"] == "watch.waits"
    assert await rig.look() == []
    rig.doors.settings = IntakeSettings()
    (told,) = await rig.look()
    assert told["event"] == "watch.taken"


async def test_a_database_that_is_away_loses_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file lies where it lay until the database is back."""

    async def away(*_: object) -> None:
        raise DatabaseUnavailable("the database is away")

    (rig.anna / "talk.mp3").write_bytes(b"x")
    with monkeypatch.context() as outage:
        outage.setattr(watch, "find_account", away)
        assert [entry["event"] for entry in await rig.look()] == ["watch.waits"]
    assert rig.lying() == ["talk.mp3"]
    assert [entry["event"] for entry in await rig.look()] == ["watch.taken"]


async def test_a_folder_that_is_nobodys_is_told_once(rig: Rig) -> None:
    """And nothing in it is touched; nor in one of an account that is disabled."""
    stranger = rig.root / "nobody"
    stranger.mkdir()
    (stranger / "talk.mp3").write_bytes(b"x")
    (told,) = await rig.look()
    assert (told["event"], told["path"]) == ("watch.stuck", str(stranger))
    assert await rig.look() == []
    (rig.root / os.fsdecode(b"\xff")).mkdir()
    (rig.root / os.fsdecode(b"\xff") / "talk.mp3").write_bytes(b"x")
    assert [entry["event"] for entry in await rig.look()] == ["watch.stuck"]
    await disable_account(rig.database, (await add_account(rig.database, "nobody")).id, disabled=True)
    assert await rig.look() == []
    assert (stranger / "talk.mp3").exists()


async def test_no_link_leads_out_of_the_folder(rig: Rig, tmp_path: Path) -> None:
    """Neither to somebody else's file nor, by a `done` of one's own, to another place."""
    secret = tmp_path / "secret.mp3"
    secret.write_bytes(b"secret")
    (rig.anna / "talk.mp3").symlink_to(secret)
    (rig.anna / "pipe.mp3").touch()
    (rig.anna / "pipe.mp3").unlink()
    os.mkfifo(rig.anna / "pipe.mp3")
    assert await rig.look() == []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (rig.anna / "done").symlink_to(elsewhere)
    (rig.anna / "mine.mp3").write_bytes(b"mine")
    (told,) = await rig.look()
    assert told["event"] == "watch.stuck"
    assert list(elsewhere.iterdir()) == []
    assert (rig.anna / "mine.mp3").exists()


async def test_names_of_every_kind_are_taken(rig: Rig) -> None:
    """Of 255 bytes, of bytes that are no text, with a line break."""
    long = "я" * 125 + ".mp3"  # two bytes each
    for number, name in enumerate((os.fsencode(long), b"\xff\xfe.mp3", b"two\nlines.mp3")):
        (rig.anna / os.fsdecode(name)).write_bytes(b"%d" % number)
    assert [entry["event"] for entry in await rig.look()] == ["watch.taken"] * 3
    assert await rig.look() == []
    assert len(await rig.records()) == 3


async def test_a_watch_folder_that_is_not_there_is_told_once(rig: Rig) -> None:
    """It may be mounted later."""
    moved = rig.root.rename(rig.root.with_name("away"))
    (told,) = await rig.look()
    assert told["event"] == "watch.stuck"
    assert await rig.look() == []
    moved.rename(rig.root)
    (rig.anna / "talk.mp3").write_bytes(b"x")
    assert [entry["event"] for entry in await rig.look()] == ["watch.taken"]


async def test_a_service_that_stops_takes_nothing_more(rig: Rig, nursery: trio.Nursery) -> None:
    """It looks again and again until then."""
    nursery.start_soon(rig.watch.keep)
    (rig.anna / "one.mp3").write_bytes(b"1")
    await until(lambda: rig.lying() == ["done/one.mp3"])
    rig.is_stopping = True
    await trio.sleep(0.05)
    (rig.anna / "two.mp3").write_bytes(b"2")
    await trio.sleep(0.1)
    assert "two.mp3" in rig.lying()
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("then", "left"), [(b"another", ["talk.mp3"]), (None, [])])
async def test_a_file_that_is_gone_or_replaced_before_its_move_is_no_harm(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, then: bytes | None, left: list[str]
) -> None:
    """What was read is a record; what lies there now has a turn of its own."""
    talk = rig.anna / "talk.mp3"
    talk.write_bytes(b"speech")

    def moved(*given: Any, **more: Any) -> None:
        talk.unlink()
        if then is not None:
            talk.write_bytes(then)
        folder.move(*given, **more)

    monkeypatch.setattr(watch, "move", moved)
    assert await rig.look() == []
    assert rig.lying() == left
    assert len(await rig.records()) == 1


async def test_a_failed_file_that_cannot_be_moved_is_told_so(rig: Rig, tmp_path: Path) -> None:
    """Once, with both reasons."""
    (rig.anna / "failed").symlink_to(tmp_path)
    (rig.anna / "empty.mp3").touch()
    (told,) = await rig.look()
    assert told["event"] == "watch.refused"
    assert "empty" in told["reason"]
    assert "cannot be moved" in told["reason"]
    assert await rig.look() == []

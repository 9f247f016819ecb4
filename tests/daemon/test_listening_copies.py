"""Listening copies are made beside the queue: durable, fenced, begun again, and never a record's trouble."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
import trio
from attrs import evolve, frozen
from structlog.testing import capture_logs

from daemon import listening_copies
from daemon.children import open_children
from daemon.listening_copies import MOST_TRIES, ListeningCopies
from daemon.metrics import Metrics
from daemon.outage import Outage
from daemon.stop import Stop
from stages.media.listening_maker import ListeningMaker
from stages.media.listening_messages import ListeningRequest, Made
from stages.media.wave64 import RATE, Writer
from stages.stage import Children
from storage.audio import Store
from storage.database import Database
from storage.errors import DatabaseUnavailable, MeansAway, StageFailed
from storage.listening import (
    Listening,
    Making,
    hold_making,
    make_again,
    publish_made,
    put_off_making,
    read_listening,
    take_making,
)
from storage.owner import delete
from storage.removals import carry_out_removals
from tests.making import a_record, an_account, change, put
from tests.waiting import until

MAKER = ListeningMaker(memory_bytes=512 * 2**20, longest_seconds=36_000.0)
Play = Callable[[ListeningRequest, Path], Awaitable[Made]]


@frozen(kw_only=True)
class Player(ListeningMaker):
    """Makes what a test says."""

    play: Play

    async def make(
        self,
        request: ListeningRequest,
        folder: Path,
        children: Children,
        still_ours: Callable[[], Awaitable[None]],
    ) -> Made:
        """Do as told."""
        del children, still_ours
        return await self.play(request, folder)


@pytest.fixture
async def copies(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ListeningCopies]:
    """The worker, on a real database, a real store and real children; it looks often."""
    monkeypatch.setattr(listening_copies, "LOOK_SECONDS", 0.01)
    metrics = Metrics(["convert"], ["convert"])
    async with open_children(cpu_threads=1) as children:
        yield ListeningCopies(
            database=database,
            store=store,
            maker=MAKER,
            children=children,
            stop=Stop(),
            outage=Outage(metrics),
        )


async def a_decoded(database: Database, store: Store, name: str = "anna", seconds: float = 5.0) -> UUID:
    """Return a record that was decoded, as a settle leaves it."""
    owner, _ = await an_account(database, name)
    record_id = await a_record(database, store, owner)
    token = uuid4()
    folder = await store.attempt_folder(record_id, token)
    with Writer(folder / "audio.w64") as writer:
        writer.write((np.sin(np.arange(round(seconds * RATE)) / 9) * 9000).astype(np.int16))
        writer.finish()
    path = f"records/{record_id}/{token}/audio.w64"
    await change(
        database,
        record_id,
        f"milestone = 'converted', lane = 'whisper', audio_path = '{path}', decoded_seconds = {seconds}",
    )
    return record_id


async def come_to(copies: ListeningCopies, condition: Callable[[], Awaitable[bool]]) -> None:
    """Have copies made until something holds."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(copies.make_all)
        await until(condition, 30)
        nursery.cancel_scope.cancel()


async def row(database: Database, record_id: UUID) -> dict[str, object]:
    """Return what there is of a record's making."""
    (found,) = await put(
        database,
        "SELECT to_jsonb(copies) - 'peaks' - 'wake_at' FROM listening_copies AS copies WHERE record_id = %s",
        record_id,
    )
    return dict(found[0])


async def is_made(database: Database, record_id: UUID) -> bool:
    """Tell whether it is."""
    return (await read_listening(database, record_id)).path is not None


async def queue_of(database: Database, record_id: UUID) -> object:
    """Return all of a record's own row."""
    return (await put(database, "SELECT to_jsonb(records) FROM records WHERE id = %s", record_id))[0][0]


async def test_what_is_decoded_gets_a_copy_and_the_record_notices_nothing(
    copies: ListeningCopies, database: Database, store: Store
) -> None:
    """By a real child: the file is where the row says, the outline is there, the record is untouched."""
    record_id = await a_decoded(database, store)
    before = await queue_of(database, record_id)
    with capture_logs() as log:
        await come_to(copies, lambda: is_made(database, record_id))
    listening = await read_listening(database, record_id)
    assert listening.path is not None
    assert listening.path.startswith(f"records/{record_id}/listening/")
    assert store.path(listening.path).stat().st_size > 10_000
    assert listening.media == "audio/mpeg"
    assert listening.peaks is not None
    assert 2 <= len(listening.peaks) <= 8000
    assert await queue_of(database, record_id) == before
    assert [entry["event"] for entry in log] == ["listening.made"]


async def test_a_record_that_is_not_decoded_is_not_wanted(database: Database, store: Store) -> None:
    """Nothing waits, and nothing is taken."""
    owner, _ = await an_account(database)
    record_id = await a_record(database, store, owner)
    assert await take_making(database, store) is None
    assert await read_listening(database, record_id) == Listening(
        path=None, media=None, peaks=None, failed_because=None
    )


async def test_only_one_makes_it_and_a_late_one_writes_nothing(database: Database, store: Store) -> None:
    """A making is taken once; after its lease it is another's, and the first can neither hold nor publish."""
    record_id = await a_decoded(database, store)
    first = await take_making(database, store)
    assert first is not None
    assert await take_making(database, store) is None
    await put(database, "UPDATE listening_copies SET wake_at = clock_timestamp()")
    second = await take_making(database, store)
    assert second is not None
    assert (second.record_id, second.tries) == (record_id, 2)
    assert not await hold_making(database, first)
    assert not await publish_made(database, first, "x", "audio/mpeg", b"")
    assert not await put_off_making(database, first, 0.0, counts=True)
    assert await hold_making(database, second)
    assert await publish_made(database, second, "x", "audio/mpeg", b"")


async def test_the_folders_of_others_are_swept_and_the_attempts_leave_ours(
    copies: ListeningCopies, database: Database, store: Store
) -> None:
    """What a kill left goes when the making is begun again; an attempt's sweep spares what is made."""
    record_id = await a_decoded(database, store)
    left = await store.listening_folder(record_id, uuid4(), until=math.inf)
    (left / "listening.mp3.part").write_bytes(b"half")
    await come_to(copies, lambda: is_made(database, record_id))
    assert not left.exists()
    listening = await read_listening(database, record_id)
    await store.sweep_attempts(record_id, keep=())
    assert listening.path is not None
    assert store.path(listening.path).is_file()
    assert store.source(record_id).is_file()


async def test_a_failure_is_tried_a_few_times_and_told_once(
    copies: ListeningCopies, database: Database, store: Store
) -> None:
    """A fault of any kind is given up after the limit, with one warning; the record never hears of it."""
    record_id = await a_decoded(database, store)
    before = await queue_of(database, record_id)
    faults: list[Exception] = [ValueError("a bug"), StageFailed("no"), OSError(5, "I/O error")]

    async def fail(request: ListeningRequest, folder: Path) -> Made:
        del request, folder
        await put(database, "UPDATE listening_copies SET wake_at = clock_timestamp()")
        raise faults[-1]

    player = Player(memory_bytes=1, longest_seconds=1, play=fail)

    async def moved_on() -> bool:
        await put(database, "UPDATE listening_copies SET wake_at = clock_timestamp() WHERE token IS NULL")
        return (await read_listening(database, record_id)).failed_because is not None

    with capture_logs() as log:
        await come_to(evolve(copies, maker=player), moved_on)
    warnings = [entry for entry in log if entry["log_level"] == "warning"]
    assert [(entry["event"], entry["reason"]) for entry in warnings] == [
        ("listening.failed", "[Errno 5] I/O error")
    ]
    found = await row(database, record_id)
    assert (found["tries"], found["token"], found["path"]) == (MOST_TRIES, None, None)
    assert await queue_of(database, record_id) == before
    assert await take_making(database, store) is None


@pytest.mark.parametrize("room", [True, False])
async def test_a_full_disk_costs_no_try(
    copies: ListeningCopies, database: Database, store: Store, *, room: bool
) -> None:
    """Neither one that is found before, nor one that ends the writing: it waits, and is made later."""
    record_id = await a_decoded(database, store)

    async def no_room(request: ListeningRequest, folder: Path) -> Made:
        del request, folder
        raise MeansAway("the disk is full")

    full = evolve(copies, maker=Player(memory_bytes=1, longest_seconds=1, play=no_room))
    if not room:
        full = evolve(copies, store=evolve(store, reserve=2**60))

    async def put_off() -> bool:
        found = await row(database, record_id)
        return bool(found["tries"] == 0 and log)

    with capture_logs() as log:
        await come_to(full, put_off)
    assert [entry["event"] for entry in log] == ["listening.put_off"]
    assert "full" in log[0]["reason"]
    assert await take_making(database, store) is None, "it waits"
    await put(database, "UPDATE listening_copies SET wake_at = clock_timestamp()")
    await come_to(copies, lambda: is_made(database, record_id))


async def test_a_database_that_is_away_costs_no_making(
    copies: ListeningCopies, database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holding and publishing are tried again, also where only the answer was lost; it is made once."""
    record_id = await a_decoded(database, store)
    losses = {"hold_making": 2, "publish_made": 2}
    makings = 0

    def losing(name: str, call: Callable[..., Awaitable[bool]]) -> Callable[..., Awaitable[bool]]:
        async def lossy(*given: object) -> bool:
            answer = await call(*given)
            if losses[name]:
                losses[name] -= 1
                raise DatabaseUnavailable("the answer was lost")
            return answer

        return lossy

    monkeypatch.setattr(listening_copies, "HOLD_SECONDS", 0.0)
    monkeypatch.setattr(listening_copies, "hold_making", losing("hold_making", hold_making))
    monkeypatch.setattr(listening_copies, "publish_made", losing("publish_made", publish_made))

    @frozen(kw_only=True)
    class Calling(ListeningMaker):
        async def make(
            self,
            request: ListeningRequest,
            folder: Path,
            children: Children,
            still_ours: Callable[[], Awaitable[None]],
        ) -> Made:
            nonlocal makings
            del request, folder, children
            makings += 1
            for _ in range(3):
                await still_ours()
            return Made(media="audio/mpeg", is_source=False, peaks=b"")

    calling = evolve(copies, maker=Calling(memory_bytes=1, longest_seconds=1))
    with capture_logs() as log:
        await come_to(calling, told(log, "listening.made"))
    assert (makings, losses) == (1, {"hold_making": 0, "publish_made": 0})
    assert (await row(database, record_id))["tries"] == 1


def told(log: list[Any], event: str) -> Callable[[], Awaitable[bool]]:
    """Tell whether an event is in the log."""

    async def is_told() -> bool:
        return any(entry["event"] == event for entry in log)

    return is_told


async def test_a_stop_gives_it_back_uncounted(
    copies: ListeningCopies, database: Database, store: Store
) -> None:
    """The next run begins it at once, as if it had never been tried."""
    record_id = await a_decoded(database, store)
    at_it = trio.Event()

    async def hang(request: ListeningRequest, folder: Path) -> Made:
        del request, folder
        at_it.set()
        await trio.sleep_forever()
        raise AssertionError

    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            evolve(copies, maker=Player(memory_bytes=1, longest_seconds=1, play=hang)).make_all
        )
        await at_it.wait()
        copies.stop.ask("a test")
    found = await row(database, record_id)
    assert (found["tries"], found["token"]) == (0, None)
    making = await take_making(database, store)
    assert making is not None
    assert making.tries == 1


async def test_a_deleted_record_is_left_alone_and_goes_with_all_its_files(
    copies: ListeningCopies, database: Database, store: Store
) -> None:
    """None is begun for it, and the purge takes what was made."""
    record_id = await a_decoded(database, store)
    await come_to(copies, lambda: is_made(database, record_id))
    await make_again(database, record_id, str((await read_listening(database, record_id)).path))
    await delete(database, record_id, None, "anna")
    assert await take_making(database, store) is None
    await put(database, "DELETE FROM records WHERE id = %s", record_id)
    await put(database, "INSERT INTO removals (record_id, store_id) VALUES (%s, %s)", record_id, store.id)
    await carry_out_removals(database, store)
    assert not store.record_folder(record_id).exists()
    assert await put(database, "SELECT record_id FROM listening_copies") == []


async def test_a_record_deleted_in_the_middle_ends_the_making(database: Database, store: Store) -> None:
    """The next sign of life finds it out."""
    record_id = await a_decoded(database, store)
    making = await take_making(database, store)
    assert isinstance(making, Making)
    await delete(database, record_id, None, "anna")
    assert not await hold_making(database, making)


async def test_what_the_store_has_lost_is_made_again(
    copies: ListeningCopies, database: Database, store: Store
) -> None:
    """A copy is derived: it is never missed for good."""
    record_id = await a_decoded(database, store)
    await come_to(copies, lambda: is_made(database, record_id))
    path = str((await read_listening(database, record_id)).path)
    store.path(path).unlink()
    await make_again(database, record_id, path)
    await come_to(copies, lambda: is_made(database, record_id))
    assert (await read_listening(database, record_id)).path != path


async def test_the_source_is_not_looked_at_where_it_cannot_be_its_own_copy(
    copies: ListeningCopies, database: Database, store: Store
) -> None:
    """With a warning, or where another track was taken, its seconds would not be the text's."""
    asked: list[ListeningRequest] = []

    async def note(request: ListeningRequest, folder: Path) -> Made:
        del folder
        asked.append(request)
        return Made(media="audio/mpeg", is_source=False, peaks=b"")

    noting = evolve(copies, maker=Player(memory_bytes=1, longest_seconds=1, play=note))
    for name, assignment in (("a", "track = 1"), ("b", "audio_warnings = '{cut_short}'"), ("c", "track = 0")):
        record_id = await a_decoded(database, store, name)
        await change(database, record_id, assignment)
        await come_to(noting, lambda record_id=record_id: is_made(database, record_id))  # type: ignore[misc]  # its own each time
    assert [request.source is None for request in asked] == [True, True, False]

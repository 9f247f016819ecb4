"""Lanes: slots are never exceeded, and an outage that concerns everybody closes a lane, not its records."""

from pathlib import Path

import pytest
import trio
import trio.testing
from attrs import evolve
from structlog.testing import capture_logs

from daemon.lanes import FIRST_PROBE_SECONDS, LONGEST_PROBE_SECONDS, Lane, Lanes
from daemon.metrics import Metrics
from stages.stage import Outcome, Tools
from storage.database import Database
from storage.errors import MeansAway
from storage.record import Milestone, Record
from tests.builders import a_queue
from tests.daemon.assembly import SETTINGS, Told, a_house, a_line, fail, reach
from tests.daemon.memory import MemoryQueue
from tests.waiting import until


@pytest.fixture
def metrics() -> Metrics:
    """The numbers of one lane."""
    return Metrics([], ["convert"])


@pytest.fixture
def lane(metrics: Metrics) -> Lane:
    """A lane with two slots."""
    return Lane("convert", 2, metrics)


class Means:
    """Means that come and go."""

    def __init__(self, *, there: bool = True) -> None:
        self.there = there
        self.probed_at: list[float] = []

    async def check(self) -> None:
        """Look for them."""
        self.probed_at.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if not self.there:
            raise MeansAway("the model is missing")


def test_slots_are_counted(lane: Lane, metrics: Metrics) -> None:
    """A lane is free as long as one is left; a slot comes back whatever ended its attempt."""
    free = [lane.is_free]

    def crash() -> None:
        with lane.slot():
            free.append(lane.is_free)
            assert metrics.value("rubezh_slots_busy", lane="convert") == 2
            raise ValueError("crash")

    with lane.slot():
        free.append(lane.is_free)
        with pytest.raises(ValueError, match="crash"):
            crash()
        free.append(lane.is_free)
    assert free == [True, True, False, True]
    assert metrics.value("rubezh_slots_busy", lane="convert") == 0


def test_the_first_failures_close_a_lane_and_it_is_told_once(lane: Lane, metrics: Metrics) -> None:
    """One may be a chance; two are an outage, whatever comes after them."""
    with capture_logs() as entries:
        lane.lacked(MeansAway("away"))
        free = [lane.is_free]
        lane.lacked(MeansAway("away"))
        free.append(lane.is_free)
        lane.lacked(MeansAway("still away"))
    assert free == [True, False]
    assert entries == [{"event": "lane.closed", "log_level": "error", "lane": "convert", "reason": "away"}]
    assert lane.closed_because == "still away", "the newest reason is the one to show"
    assert metrics.value("rubezh_lane_closed", lane="convert") == 1


def test_an_attempt_that_works_between_two_failures_keeps_a_lane_open(lane: Lane) -> None:
    """The means are there then."""
    for _ in range(10):
        lane.lacked(MeansAway("away"))
        lane.worked()
    assert lane.is_free


def test_a_lane_opens_and_begins_anew(lane: Lane, metrics: Metrics) -> None:
    """Told once; the failures of before count no more."""
    with capture_logs() as entries:
        lane.close("away")
        lane.open()
        lane.open()
        lane.lacked(MeansAway("away"))
    assert [entry["event"] for entry in entries] == ["lane.closed", "lane.opened"]
    assert lane.is_free
    assert metrics.value("rubezh_lane_closed", lane="convert") == 0


def test_the_free_lanes_are_those_with_a_slot_and_open() -> None:
    """Full and closed ones are left out; an unknown one is an error."""
    lanes = Lanes({"convert": 1, "whisper": 1, "yandex": 1}, Metrics([], []))
    lanes["yandex"].close("away")
    with lanes["whisper"].slot():
        assert lanes.free() == ["convert"]
    assert lanes.free() == ["convert", "whisper"]
    with pytest.raises(KeyError):
        lanes["nobody"]


async def test_the_means_are_looked_for_before_work_begins() -> None:
    """A lane without its means does not take the first records to find that out."""
    means, lanes = Means(there=False), Lanes({"convert": 1}, Metrics([], []))
    async with trio.open_nursery() as nursery:
        await nursery.start(lanes.probe, [Told(takes=Milestone.CREATED, means=means.check)])
        assert lanes["convert"].closed_because == "the model is missing"
        nursery.cancel_scope.cancel()


async def test_a_probe_opens_the_lane_with_growing_pauses(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An open lane is not probed; a closed one less and less often, and soon again once it was open."""
    means, lanes = Means(), Lanes({"convert": 1}, Metrics([], []))
    lane = lanes["convert"]
    async with trio.open_nursery() as nursery:
        await nursery.start(lanes.probe, [Told(takes=Milestone.CREATED, means=means.check)])
        await trio.sleep(600.5)
        assert len(means.probed_at) == 1, "at the start alone"
        means.there = False
        closed_at = trio.current_time()
        lane.close("away")
        await trio.sleep(600)
        assert means.probed_at[1] - closed_at <= FIRST_PROBE_SECONDS
        pauses = [
            after - before for before, after in zip(means.probed_at[1:], means.probed_at[2:], strict=False)
        ]
        assert pauses[:5] == [4, 8, 16, 32, 60]
        assert set(pauses[5:]) == {LONGEST_PROBE_SECONDS}
        means.there = True
        await trio.sleep(LONGEST_PROBE_SECONDS)
        assert lane.is_free
        closed_at = trio.current_time()
        lane.close("away again")
        await trio.sleep(FIRST_PROBE_SECONDS)
        assert lane.is_free, "the pauses of the last outage are over"
        nursery.cancel_scope.cancel()


async def test_a_lane_opens_when_every_stage_in_it_has_its_means(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One that has them does not open it for one that has not, to be closed again by that."""
    missing, there, lanes = Means(there=False), Means(), Lanes({"whisper": 1}, Metrics([], []))
    stages = [
        Told(takes=Milestone.CONVERTED, means=missing.check),
        Told(takes=Milestone.TRANSCRIBE, means=there.check),
    ]
    with capture_logs() as entries:
        async with trio.open_nursery() as nursery:
            await nursery.start(lanes.probe, stages)
            await trio.sleep(600)
            closed = lanes["whisper"].closed_because
            missing.there = True
            await trio.sleep(LONGEST_PROBE_SECONDS)
            nursery.cancel_scope.cancel()
    assert closed == "the model is missing"
    assert [entry["event"] for entry in entries] == ["lane.closed", "lane.opened"]


async def test_an_error_of_a_probe_that_nobody_knows_is_not_passed_over() -> None:
    """A fault of ours ends the service."""

    async def stumble() -> None:
        raise RuntimeError("a fault of ours")

    lanes = Lanes({"convert": 1}, Metrics([], []))
    with pytest.raises(RuntimeError, match="ours"):
        await lanes.probe([Told(takes=Milestone.CREATED, means=stumble)])


async def test_s_p11_a_full_lane_waits_and_an_exhausted_record_does_not(
    database: Database, tmp_path: Path
) -> None:
    """With no free slot the ready record stays; the exhausted one is claimed and stopped."""
    queue = await a_queue(database)
    leave = trio.Event()

    async def stay(record: Record, tools: Tools) -> Outcome:
        await leave.wait()
        return await reach(record, tools)

    settings = evolve(SETTINGS, poll_seconds=0.05, grace_seconds=10.0)
    house = a_house(queue, tmp_path, a_line(play=stay), settings=settings, slots={"convert": 1, "whisper": 1})
    busy = await house.record()
    async with house.serving(workers=3):
        await until(lambda: house.lanes["convert"].busy == 1)
        ready = await house.record()
        exhausted = await house.record(failures=house.settings.failures_limit)

        async def is_stopped() -> bool:
            return bool((await queue.row(exhausted))["stop_code"] == "attempts_exhausted")

        await until(is_stopped)
        asked = house.door.calls["claim"]
        await until(lambda: house.door.calls["claim"] > asked + 2)
        row = await queue.row(ready)
        assert (row["failures"], row["claim_token"]) == (0, None), "it waits, uncounted"
        assert house.lanes["convert"].busy == 1
        leave.set()

        async def are_converted() -> bool:
            rows = [await queue.row(record) for record in (busy, ready)]
            return all(row["milestone"] != "created" for row in rows)

        await until(are_converted)


async def test_slots_are_never_exceeded(autojump_clock: trio.testing.MockClock, tmp_path: Path) -> None:
    """More workers and more records than slots: as many at once as there are slots, and all get done."""
    queue = MemoryQueue()
    at_once, most = 0, 0

    async def work(record: Record, tools: Tools) -> Outcome:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await trio.sleep(10)
        at_once -= 1
        return await reach(record, tools)

    house = a_house(queue, tmp_path, a_line(play=work), slots={"convert": 2, "whisper": 4})
    records = [await house.record() for _ in range(12)]
    async with house.serving(workers=5):
        started = trio.current_time()
        await trio.sleep_until(started + 61)
        done = [queue.now(record).milestone is Milestone.DONE for record in records]
        assert all(done), "a slot that is free is used at once"
    assert most == 2


async def test_s_p14_an_outage_closes_the_lane_and_not_the_records(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    """The first attempts fail for it; the rest of the queue waits uncounted, and goes on after the probe."""
    queue, means = MemoryQueue(), Means()

    async def need_means(record: Record, tools: Tools) -> Outcome:
        if not means.there:
            return await fail(MeansAway("the recogniser does not answer"))(record, tools)
        return await reach(record, tools)

    line = a_line(play=need_means, means=means.check)
    house = a_house(queue, tmp_path, line, slots={"convert": 2, "whisper": 2})
    records = [await house.record() for _ in range(8)]
    with capture_logs() as entries:
        async with house.serving(workers=3) as work:
            await work.start(house.lanes.probe, line)
            means.there = False
            await trio.sleep(300)
            counted = sum(queue.now(record).failures for record in records)
            assert 2 <= counted <= 3, "the failures that closed it, and what ran beside the second"
            assert all(queue.now(record).stop is None for record in records)
            assert house.lanes["convert"].closed_because == "the model is missing", "as the probe has it"
            means.there = True
            await trio.sleep(LONGEST_PROBE_SECONDS + 10)
            assert all(queue.now(record).milestone is Milestone.DONE for record in records)
            work.cancel_scope.cancel()
    told = [(entry["event"], entry.get("reason")) for entry in entries if entry["event"].startswith("lane.")]
    assert told == [("lane.closed", "the recogniser does not answer"), ("lane.opened", None)]
    assert house.marks() == {"failure": counted, "success": 24}


async def test_s_p14_with_a_real_queue(database: Database, tmp_path: Path) -> None:
    """The same with PostgreSQL: records of a closed lane are not claimed, those of others are."""
    queue = await a_queue(database)
    away = fail(ExceptionGroup("from a nursery", [MeansAway("no room on the disk")]))
    house = a_house(queue, tmp_path, a_line(play=away), settings=evolve(SETTINGS, poll_seconds=0.02))
    records = [await house.record() for _ in range(4)]
    other = await house.record(Milestone.TRANSCRIBE)
    async with house.serving(workers=1):
        await until(lambda: house.lanes["convert"].closed_because is not None)

        async def is_done() -> bool:
            return bool((await queue.row(other))["milestone"] == "done")

        await until(is_done)
        asked = house.door.calls["claim"]
        await until(lambda: house.door.calls["claim"] > asked + 3)
    assert sorted([(await queue.row(record))["failures"] for record in records]) in (
        [0, 0, 0, 2],
        [0, 0, 1, 1],
    )

"""Workers: an empty run is not a failure, a claim is never left behind, and a stop finds them at once."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import structlog
import trio
from attrs import evolve
from structlog.testing import capture_logs
from structlog.typing import EventDict
from trio.testing import MockClock

from daemon.metrics import Metrics
from daemon.parts import BEAT_MARGIN_SECONDS
from daemon.worker import CouldNotAsk
from stages.stage import Deferred, Outcome, Tools
from storage import owner
from storage.claim import ClaimLost, NoWork
from storage.database import Database
from storage.record import Milestone, Record
from tests.builders import FOUND, LEASES, Queue, a_queue
from tests.daemon.assembly import SETTINGS, House, Told, a_house, a_line, fail, hang, reach
from tests.daemon.door import Deed, after, answer_lost, away, first, late, raising
from tests.daemon.memory import MemoryQueue
from tests.waiting import until

OWNER_S_LEVELS = ("info", "warning", "error", "critical")


@pytest.fixture
async def queue(database: Database) -> Queue:
    """An empty queue in a real database."""
    return await a_queue(database)


@pytest.fixture
def told() -> Iterator[list[EventDict]]:
    """What is logged, with what is bound around it."""
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as entries:
        yield entries


def at_the_owner_s_level(entries: list[EventDict]) -> list[str]:
    """Return the events at INFO and above."""
    return [entry["event"] for entry in entries if entry["log_level"] in OWNER_S_LEVELS]


def counted(metrics: Metrics) -> dict[str, str]:
    """Return every number that is not zero."""
    lines = [line for line in metrics.exposition().decode().splitlines() if not line.startswith("#")]
    return {name: value for name, _, value in (line.rpartition(" ") for line in lines) if float(value)}


async def look(house: House) -> object:
    """Make one round."""
    with ExitStack() as keeping:
        return await house.workers.look(keeping)


# An empty run.


async def test_s_f1_nothing_is_ready(queue: Queue, tmp_path: Path, told: list[EventDict]) -> None:
    """Round after round on a real queue: nothing at INFO or above, and no number grows."""
    house = a_house(queue, tmp_path, settings=evolve(SETTINGS, poll_seconds=0.02))
    held, stopped = await house.record(), await house.record()
    assert (await queue.claim()).record_id == held
    await owner.stop(queue.database, stopped, queue.owner, "anna")
    async with house.serving(workers=3):
        await until(lambda: house.door.calls["claim"] > 5)
        assert at_the_owner_s_level(told) == []
        assert counted(house.metrics) == {}
        house.stop.ask("test")
    assert at_the_owner_s_level(told) == ["service.stopping"]


async def test_s_f1_an_hour_of_nothing(
    autojump_clock: MockClock, tmp_path: Path, told: list[EventDict]
) -> None:
    """One poll a second for the whole process, however many workers it has."""
    house = a_house(MemoryQueue(), tmp_path)
    async with house.serving(workers=16):
        await trio.sleep(3600.5)
        assert house.door.calls["claim"] == 3601
        assert at_the_owner_s_level(told) == []
        assert counted(house.metrics) == {}
        assert house.beats.silent() == frozenset()


async def test_s_f2_nothing_is_ready_and_a_layer_explained_it(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """With every lane closed the answer has an explanation: still an empty run."""
    house = a_house(queue, tmp_path)
    await house.record()
    for lane in ("convert", "whisper"):
        house.lanes[lane].close("test")
    told.clear()
    answer = await look(house)
    assert answer == NoWork(("every lane is busy or closed",))
    assert house.door.asked_lanes == [[]]
    assert at_the_owner_s_level(told) == []
    assert [name for name in counted(house.metrics) if "lane_closed" not in name] == []


async def test_s_f2_a_failure_after_an_empty_run_is_a_failure(
    autojump_clock: MockClock, tmp_path: Path, told: list[EventDict]
) -> None:
    """An answer of no work that comes beside it or before it hides nothing."""

    async def explain(proceed: Callable[[], Awaitable[object]]) -> object:
        answer = await proceed()
        return answer.explained("from another layer") if isinstance(answer, NoWork) else answer

    house = a_house(MemoryQueue(), tmp_path, a_line(play=fail(ValueError("no work"))))
    house.door.always["claim"] = explain
    async with house.serving(workers=2):
        await trio.sleep(3)
        assert at_the_owner_s_level(told) == []
        await house.record()
        await until(lambda: house.marks().get("failure", 0) > 0)
    assert "record.failed" in at_the_owner_s_level(told)


# A round with work in it.


async def test_s_f3_a_stage_that_failed_is_one_line_and_one_mark(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """On a real queue, by a worker; the worker goes on."""
    settings = evolve(SETTINGS, first_retry_seconds=60.0, longest_retry_seconds=60.0)
    house = a_house(queue, tmp_path, a_line(play=fail(ValueError("bad"))), settings=settings)
    await house.record(), await house.record()
    async with house.serving():
        await until(lambda: house.marks() == {"failure": 2})
        assert at_the_owner_s_level(told) == ["record.failed", "record.failed"]


async def test_s_f4_a_stage_that_did_its_work_is_a_success(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """One mark a stage, and no word of a failure."""
    house = a_house(queue, tmp_path)
    await house.record()
    async with house.serving(workers=3):
        await until(lambda: house.marks() == {"success": 3})
        assert at_the_owner_s_level(told) == ["record.reached"] * 3
        stages = [entry["stage"] for entry in told if entry["event"] == "record.reached"]
        assert stages == ["from_created", "from_converted", "from_transcribe"]
    assert house.metrics.value("rubezh_claim_seconds_count") == 3


async def test_s_d4_a_record_that_goes_well_gathers_no_failures(queue: Queue, tmp_path: Path) -> None:
    """Several milestones and several steps of one of them: the count is zero after each settle."""
    counts: list[int] = []
    steps = iter(range(5))

    async def step(record: Record, tools: Tools) -> Outcome:
        if next(steps, None) is None:
            return await reach(record, tools)
        return Deferred(0.0, FOUND[record.milestone])

    async def count(proceed: Callable[[], Awaitable[object]]) -> object:
        settled = await proceed()
        counts.append((await queue.row(record))["failures"])
        return settled

    line = (*a_line()[:2], Told(takes=Milestone.TRANSCRIBE, play=step))
    house = a_house(queue, tmp_path, line)
    house.door.always["settle"] = count
    record = await house.record()
    async with house.serving(workers=3):

        async def is_done() -> bool:
            return bool((await queue.row(record))["milestone"] == "done")

        await until(is_done)
    assert counts == [0] * 8


async def test_records_of_all_owners_are_taken_in_order_of_creation(queue: Queue, tmp_path: Path) -> None:
    """A worker never looks at the owner."""
    worked: list[object] = []

    async def note(record: Record, tools: Tools) -> Outcome:
        worked.append(record.id)
        return await reach(record, tools)

    house = a_house(queue, tmp_path, a_line(play=note))
    records = [await house.record() for _ in range(4)]
    async with house.serving():
        await until(lambda: len(worked) == 4)
    assert worked == records


# Claims that are lost, and answers that are.


@pytest.mark.parametrize("verb", [owner.delete, owner.stop])
async def test_s_p7_a_record_deleted_between_claim_and_read_is_a_lost_claim(
    queue: Queue, tmp_path: Path, told: list[EventDict], verb: Callable[..., Awaitable[object]]
) -> None:
    """Its own mark and one line: no empty run, no failure of the stage; the worker looks again at once."""
    house = a_house(queue, tmp_path, a_line(play=fail(AssertionError("it ran"))))
    record = await house.record()

    async def strike() -> None:
        await verb(queue.database, record, queue.owner, "anna")

    house.door.then("read", first(strike))
    async with house.serving():
        await until(lambda: house.door.calls["claim"] >= 2, seconds=0.8)
    assert house.marks() == {"lost": 1}
    assert at_the_owner_s_level(told) == ["claim.lost", "service.stopping"]
    assert house.door.calls["settle"] == 0
    assert (await queue.row(record))["claim_token"] is None


async def test_s_p7_the_answer_is_neither_no_work_nor_a_failure(tmp_path: Path) -> None:
    """A value of its own, and nothing stays held."""
    queue = MemoryQueue()
    house = a_house(queue, tmp_path)
    record = await house.record()

    async def delete() -> None:
        await queue.delete(record)

    house.door.then("read", first(delete))
    assert await look(house) == ClaimLost()
    assert house.lanes["convert"].busy == 0
    house.keeper.owe()
    assert house.debts.open_at(0) == []


@pytest.mark.parametrize("verb", ["claim", "read"])
async def test_a_claim_whose_answer_was_lost_is_given_back_by_its_token(
    queue: Queue, tmp_path: Path, told: list[EventDict], verb: str
) -> None:
    """The count is what it was, and the record is worked after all; the outage is two lines."""
    house = a_house(queue, tmp_path, settings=evolve(SETTINGS, poll_seconds=0.05, renew_seconds=0.05))
    record = await house.record(failures=1)
    house.door.then(verb, answer_lost)
    async with house.serving(keeping=True):
        await until(lambda: house.marks() == {"success": 3})
    kinds = await queue.kinds(record)
    assert kinds == ["claimed", "given_back"] + ["claimed", "reached"] * 3
    events = at_the_owner_s_level(told)
    assert events[:3] == ["database.away", "database.returned", "give_back.repaid"]
    assert events[3:] == ["record.reached"] * 3 + ["service.stopping"]


async def test_the_last_failure_of_an_exhausted_record_may_be_lost_too(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    """The third of a claim's questions: given back like the others, and stopped the next time."""
    queue = MemoryQueue()
    house = a_house(queue, tmp_path)
    record = await house.record(failures=SETTINGS.failures_limit)
    house.door.then("last_failure", answer_lost)
    async with house.serving(keeping=True):
        await trio.sleep(30)
    stop = queue.now(record).stop
    assert stop is not None
    assert stop.code == "attempts_exhausted"
    assert queue.now(record).failures == SETTINGS.failures_limit + 1


async def test_a_question_that_was_not_answered_says_nothing_of_work(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    """It is no empty run: an answer of its own."""
    house = a_house(MemoryQueue(), tmp_path)
    house.door.then("claim", away)
    assert await look(house) == CouldNotAsk()
    assert house.metrics.value("rubezh_database_away") == 1


@pytest.mark.parametrize(
    ("outage", "most_owed"),
    [(away, 0.0), (answer_lost, max(LEASES.values()) + 1)],
    ids=["away", "answer lost"],
)
async def test_a_long_outage_is_two_lines_however_often_it_is_polled(
    autojump_clock: MockClock, tmp_path: Path, told: list[EventDict], outage: Deed, most_owed: float
) -> None:
    """An hour of questions in vain: what was never sent is not owed, and the rest is bounded."""
    house = a_house(MemoryQueue(), tmp_path)
    async with house.serving(workers=3, keeping=True):
        await trio.sleep(10.5)  # not at the moment of a poll, of which some would be answered yet
        house.door.always["*"] = outage
        await trio.sleep(3600)
        owed = len(house.debts.open_at(trio.current_time()))
        house.door.always.clear()
        await house.record()
        await until(lambda: house.marks() == {"success": 3}, seconds=60)
        await trio.sleep(30)
        assert house.beats.silent() == frozenset()
    assert owed <= most_owed
    events = [event for event in at_the_owner_s_level(told) if not event.startswith("record.")]
    assert events == ["database.away", "database.returned", "service.stopping"]
    assert house.door.calls["claim"] > 3600


async def test_a_claim_in_flight_at_a_cancel_is_not_left_behind(queue: Queue, tmp_path: Path) -> None:
    """The question is shielded; what it took is given back by the attempt that begins and ends at once."""
    house = a_house(queue, tmp_path, a_line(play=fail(AssertionError("it ran"))))
    house.door.then("claim", late(0.1))
    house.door.then("read", late(0.1))
    record = await house.record(failures=2)
    async with house.serving() as work:
        await until(lambda: house.door.calls["claim"] == 1)
        house.stop.ask("test")
        work.cancel_scope.cancel()
    row = await queue.row(record)
    assert (row["failures"], row["claim_token"]) == (2, None)
    assert house.marks() == {"given_back": 1}


async def test_a_claim_in_flight_at_a_cancel_whose_answer_is_lost_is_owed(
    queue: Queue, tmp_path: Path
) -> None:
    """Nobody waits for the answer any more; the orderly end writes it down, and the next start pays."""
    house = a_house(queue, tmp_path)

    async def lose_late(proceed: Callable[[], Awaitable[object]]) -> object:
        await trio.sleep(0.1)
        return await answer_lost(proceed)

    house.door.then("claim", lose_late)
    record = await house.record(failures=2)
    async with house.serving() as work:
        await until(lambda: house.door.calls["claim"] == 1)
        house.stop.ask("test")
        work.cancel_scope.cancel()
    assert (await queue.row(record))["failures"] == 3
    house.keeper.owe()
    await a_house(queue, tmp_path).keeper.pay_back()
    assert (await queue.row(record))["failures"] == 2


async def test_a_claim_in_flight_at_a_crash_is_spent(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """No stop was asked for: what ended it may be the record's own doing."""
    house = a_house(queue, tmp_path)
    house.door.then("claim", late(0.1))
    record = await house.record()
    async with house.serving() as work:
        await until(lambda: house.door.calls["claim"] == 1)
        work.cancel_scope.cancel()
        await until(lambda: house.marks() == {"failure": 1})
    assert (await queue.row(record))["failures"] == 1


async def test_a_fault_of_ours_in_a_claim_ends_the_service(autojump_clock: MockClock, tmp_path: Path) -> None:
    """It is no outage, whatever it looks like from afar."""
    house = a_house(MemoryQueue(), tmp_path)
    house.door.then("claim", raising(KeyError("a fault of ours")))
    with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesGroup(KeyError))):
        async with house.serving():
            await trio.sleep(10)
    assert house.keeper._holds == {}  # noqa: SLF001 - nobody else may see them


# Turns, slots and the bell.


async def test_one_claim_is_in_flight_at_a_time(autojump_clock: MockClock, tmp_path: Path) -> None:
    """So no two workers take the last slot, and an idle process asks with one voice."""
    asking = most = 0

    async def count(proceed: Callable[[], Awaitable[object]]) -> object:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await trio.sleep(0.01)
        try:
            return await proceed()
        finally:
            asking -= 1

    house = a_house(MemoryQueue(), tmp_path)
    house.door.always["claim"] = count
    for _ in range(20):
        await house.record()
    async with house.serving(workers=8):
        await until(lambda: house.marks() == {"success": 60}, seconds=60)
    assert most == 1


async def test_work_is_shared_among_the_workers(autojump_clock: MockClock, tmp_path: Path) -> None:
    """Who has taken a record passes the turn on before working it."""

    async def work(record: Record, tools: Tools) -> Outcome:
        await trio.sleep(10)
        return await reach(record, tools)

    house = a_house(MemoryQueue(), tmp_path, a_line(play=work))
    for _ in range(4):
        await house.record()
    async with house.serving(workers=4):
        await trio.sleep(12)
        assert house.marks() == {"success": 12}


async def test_a_ring_wakes_who_waits_and_is_not_lost_during_a_question(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    """Work that becomes ready while a claim is under way is found without the second of waiting."""
    house = a_house(MemoryQueue(), tmp_path, settings=evolve(SETTINGS, poll_seconds=60.0))
    async with house.serving():
        await trio.sleep(5)
        await house.record()
        house.bell.ring()
        await until(lambda: house.marks() == {"success": 3}, seconds=0.5)
        await trio.sleep(60)
        asked = house.door.calls["claim"]
        house.door.then("claim", late(0.2))
        house.bell.ring()
        await until(lambda: house.door.calls["claim"] == asked + 1, seconds=1)
        await trio.sleep(0.1)
        await house.record()  # too late for the claim whose answer is under way
        house.bell.ring()
        await until(lambda: house.marks() == {"success": 6}, seconds=0.5)


async def test_a_slot_is_held_until_the_stage_has_ended(autojump_clock: MockClock, tmp_path: Path) -> None:
    """Also while a cancelled stage ends its child: no second one may start beside it."""
    busy: list[int] = []

    async def end_slowly(record: Record, tools: Tools) -> Outcome:
        try:
            return await hang(record, tools)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
            busy.append(house.lanes["convert"].busy)

    house = a_house(
        MemoryQueue(), tmp_path, a_line(play=end_slowly, seconds=1.0), slots={"convert": 1, "whisper": 1}
    )
    await house.record(), await house.record()
    async with house.serving(workers=2):
        await trio.sleep(20)
    assert set(busy) == {1}
    assert house.lanes["convert"].busy == 0


async def test_an_exhausted_record_takes_no_slot(tmp_path: Path) -> None:
    """It is only to be stopped."""
    house = a_house(MemoryQueue(), tmp_path, slots={"convert": 1, "whisper": 1})
    await house.record(failures=SETTINGS.failures_limit)
    await house.take()
    assert house.lanes["convert"].busy == 0
    await house.record(failures=SETTINGS.failures_limit - 1)
    await house.take()
    assert house.lanes["convert"].busy == 1, "its last attempt is one like the others"


# A stop.


async def test_idle_workers_leave_at_once_on_a_stop(autojump_clock: MockClock, tmp_path: Path) -> None:
    """Nobody waits for the grace, or for the poll's time, with nothing to end."""
    settings = evolve(SETTINGS, grace_seconds=30.0, poll_seconds=60.0)
    house = a_house(MemoryQueue(), tmp_path, settings=settings)
    async with house.serving(workers=5):
        await trio.sleep(10)
        asked, started = house.door.calls["claim"], trio.current_time()
        house.stop.ask("test")
    assert trio.current_time() == started
    assert house.door.calls["claim"] == asked


async def test_idle_workers_leave_at_once_also_when_a_claim_is_in_flight(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    """The bell of the stop rings while the question is under way: it is not missed."""
    settings = evolve(SETTINGS, grace_seconds=30.0, poll_seconds=60.0)
    house = a_house(MemoryQueue(), tmp_path, settings=settings)
    house.door.then("claim", after(0.5))
    async with house.serving(workers=5):
        await trio.sleep(0.2)
        house.stop.ask("test")
    assert trio.current_time() == 0.5


async def test_a_worker_claims_nothing_more_once_a_stop_is_asked_for(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    """What runs may end within the grace; what waits is left for the next start."""
    queue = MemoryQueue()

    async def work(record: Record, tools: Tools) -> Outcome:
        await trio.sleep(10)
        return await reach(record, tools)

    house = a_house(queue, tmp_path, a_line(play=work), settings=evolve(SETTINGS, grace_seconds=30.0))
    running, waiting = await house.record(), await house.record()
    async with house.serving(workers=1):
        await trio.sleep(1)
    assert trio.current_time() == 10
    assert queue.now(running).milestone is Milestone.CONVERTED
    assert (queue.now(waiting).milestone, queue.now(waiting).failures) == (Milestone.CREATED, 0)


async def test_the_watchdog_knows_what_a_worker_may_take(autojump_clock: MockClock, tmp_path: Path) -> None:
    """A stage at work for as long as it may is not silent; a worker that hangs past it is."""
    house = a_house(MemoryQueue(), tmp_path, a_line(play=hang, seconds=1000.0))
    async with house.serving(workers=2, keeping=True):
        await trio.sleep(990)
        assert house.beats.silent() == frozenset()
        await house.record()
        await trio.sleep(990)
        assert house.beats.silent() == frozenset()
    house.beats.promise("worker 9", 1)
    await trio.sleep(2 + BEAT_MARGIN_SECONDS)
    assert house.beats.silent() == {"worker 9"}, "who left is expected no more"

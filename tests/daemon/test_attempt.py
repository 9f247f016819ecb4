"""One attempt, one settle: each of the seven ends, told once, and never written by who lost the claim."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest
import structlog
import trio
from attrs import evolve
from structlog.testing import capture_logs
from structlog.typing import EventDict
from trio.testing import MockClock

from daemon.attempt import SETTLE_PAUSE_SECONDS
from daemon.policy import Taken
from stages.stage import Deferred, Hopeless, Outcome, Reached, Tools
from storage import owner
from storage.claim import NotFound, NoWork
from storage.claims import Settled
from storage.database import Database
from storage.errors import DataRefused, MeansAway, StageFailed
from storage.readiness import Readiness, read_readiness
from storage.record import Findings, Milestone, Record, StopCode
from tests.builders import EVERY_LANE, FOUND, Queue, a_queue, advance, begun, conversion, segment
from tests.daemon.assembly import SETTINGS, House, Play, Told, a_house, a_line, answer, fail, hang, reach
from tests.daemon.door import answer_lost, away, late, raising
from tests.daemon.ends import cells
from tests.daemon.memory import MemoryQueue
from tests.daemon.test_verdict import RAISING
from tests.waiting import until

LOUD = ("warning", "error", "critical")


@pytest.fixture
async def queue(database: Database) -> Queue:
    """An empty queue in a real database."""
    return await a_queue(database)


@pytest.fixture
def told() -> Iterator[list[EventDict]]:
    """What is logged, with what is bound around it."""
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as entries:
        yield entries


def loud(entries: list[EventDict]) -> list[tuple[str, str]]:
    """Return what stands at WARNING or above."""
    return [(entry["event"], entry["log_level"]) for entry in entries if entry["log_level"] in LOUD]


def play_out(ended_by: str) -> Play:
    """Return a stage's work that ends so."""

    async def play(record: Record, tools: Tools) -> Outcome:
        await RAISING[ended_by]()
        return await reach(record, tools)

    return play


class CrashError(Exception):
    """A neighbour's."""


# Each of the seven ends, on a real queue.


async def test_reached(queue: Queue, tmp_path: Path, told: list[EventDict]) -> None:
    """The findings are written, the record is at its next milestone, ready, uncounted."""
    house = a_house(queue, tmp_path)
    record = await house.record(failures=2)
    await house.attempt()
    row = await queue.row(record)
    assert (row["milestone"], row["lane"], row["failures"], row["claim_token"]) == (
        "converted",
        "whisper",
        0,
        None,
    )
    assert row["decoded_seconds"] == 60.5
    assert (await queue.kinds(record))[-1] == "reached"
    assert house.marks() == {"success": 1}
    assert loud(told) == []
    [entry] = [entry for entry in told if entry["log_level"] == "info"]
    assert entry["event"] == "record.reached"
    assert (entry["record"], entry["owner"]) == (str(record), str(queue.owner))
    assert (entry["stage"], entry["milestone"], entry["reached"]) == ("from_created", "created", "converted")
    assert house.metrics.value("rubezh_settle_seconds_count") == 1
    assert house.metrics.value("rubezh_attempt_seconds_count", stage="from_created") == 1


async def test_deferred(queue: Queue, tmp_path: Path, told: list[EventDict]) -> None:
    """What was gained is saved, the count starts anew, and nothing is told above DEBUG."""
    step = Deferred(60.0, advance(segment(0, "so far")), "half")
    line = (*a_line()[:2], Told(takes=Milestone.TRANSCRIBE, play=answer(step)))
    house = a_house(queue, tmp_path, line)
    record = await house.record(Milestone.TRANSCRIBE, failures=2)
    await house.attempt()
    row = await queue.row(record)
    assert (row["milestone"], row["failures"]) == ("transcribe", 0)
    assert [found["text"] for found in await queue.segments(record)] == ["so far"]
    assert await queue.ask() == NoWork()
    assert house.marks() == {"deferred": 1}
    assert [entry["event"] for entry in told if entry["log_level"] != "debug"] == []
    assert house.metrics.value("rubezh_recognised_audio_seconds_total", lane="whisper") == 10
    assert house.metrics.value("rubezh_recognition_seconds_total", lane="whisper") > 0


async def test_deferred_too_often(queue: Queue, tmp_path: Path, told: list[EventDict]) -> None:
    """Past the milestone's limit the same settle stops the record, and it is told once."""
    step = Deferred(500.0, advance(), "half")
    line = (*a_line()[:2], Told(takes=Milestone.TRANSCRIBE, play=answer(step), whole_seconds=400.0))
    house = a_house(queue, tmp_path, line)
    record = await house.record(Milestone.TRANSCRIBE)
    await house.attempt()
    assert (await queue.row(record))["stop_code"] == "overdue"
    assert loud(told) == [("record.stopped", "error")]
    assert house.metrics.value("rubezh_stops_total", code=StopCode.OVERDUE) == 1


async def test_hopeless(queue: Queue, tmp_path: Path, told: list[EventDict]) -> None:
    """The record is stopped at once, with the reason."""
    house = a_house(queue, tmp_path, a_line(play=answer(Hopeless(StopCode.NO_AUDIO, "no track at all"))))
    record = await house.record()
    await house.attempt()
    row = await queue.row(record)
    assert (row["stop_code"], row["stop_reason"]) == ("no_audio", "no track at all")
    assert house.marks() == {"hopeless": 1}
    assert house.metrics.value("rubezh_stops_total", code=StopCode.NO_AUDIO) == 1
    assert loud(told) == [("record.stopped", "error")]


async def test_failed(queue: Queue, tmp_path: Path, told: list[EventDict]) -> None:
    """The claim stays counted, the record is due again after a delay, and the cause is in its history."""
    settings = evolve(SETTINGS, first_retry_seconds=60.0, longest_retry_seconds=60.0)
    house = a_house(queue, tmp_path, a_line(play=fail(ValueError("bad\nfile"))), settings=settings)
    record = await house.record()
    await house.attempt()
    row = await queue.row(record)
    assert (row["failures"], row["claim_token"]) == (1, None)
    assert row["wake_at"] is not None
    event = (await queue.events(record))[-1]
    assert (event["kind"], event["detail"]["cause"]) == ("failed", "ValueError: bad file")
    assert house.marks() == {"failure": 1}
    [entry] = [entry for entry in told if entry["log_level"] != "debug"]
    assert (entry["event"], entry["log_level"], entry["failures"]) == ("record.failed", "warning", 1)
    assert entry["reason"] == "ValueError: bad file"
    assert isinstance(entry["exc_info"], ValueError), "nobody expected it: the traceback says where"


async def test_a_failure_s_own_word_reaches_the_next_attempt(queue: Queue, tmp_path: Path) -> None:
    """With how many attempts are left; a failure that has no word leaves none."""
    seen: list[tuple[str | None, int]] = []

    async def play(record: Record, tools: Tools) -> Outcome:
        seen.append((tools.last_fault, tools.attempts_left))
        if record.failures == 3:
            raise ValueError("no word")
        error = StageFailed("the piece at 7 failed")
        error.fault = f"7:{record.failures}"
        raise error

    house = a_house(queue, tmp_path, a_line(play=play))
    await house.record()
    limit = house.settings.failures_limit
    for _ in range(limit):
        await house.attempt()
    told = [None, "7:1", "7:2", None, "7:4"][:limit]
    assert seen == [(word, limit - number) for number, word in enumerate(told, 1)]


async def test_s_p3_a_hung_stage_is_ended_by_its_time_limit(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """However often its lease is renewed: a failure of its own mark."""
    house = a_house(queue, tmp_path, a_line(play=hang, seconds=0.3))
    record = await house.record()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.keeper.keep, 0.05)
        await house.attempt()
        nursery.cancel_scope.cancel()
    assert house.door.calls["renew"] > 3
    row = await queue.row(record)
    assert (row["failures"], row["claim_token"]) == (1, None)
    assert (await queue.kinds(record))[-1] == "timed_out"
    assert house.marks() == {"timed_out": 1}
    assert loud(told) == [("record.timed_out", "warning")]


async def test_given_back(queue: Queue, tmp_path: Path, told: list[EventDict]) -> None:
    """A stop cancels the stage: uncounted, ready at once, no word above INFO and no failure mark."""
    house = a_house(queue, tmp_path, a_line(play=hang))
    record = await house.record(failures=2)
    async with house.serving():
        await until(lambda: house.lanes["convert"].busy == 1)
    row = await queue.row(record)
    assert (row["failures"], row["claim_token"], row["wake_at"], row["stop_code"]) == (2, None, None, None)
    assert (await queue.kinds(record))[-1] == "given_back"
    assert house.marks() == {"given_back": 1}
    assert loud(told) == []


# Only the claim's holder writes. Here nothing but the guard of the statements holds the first one back: no
# keeper runs, and so no local cancel.


EVERY_OUTCOME = pytest.mark.parametrize(
    ("milestone", "outcome"),
    [
        (Milestone.CREATED, Reached(conversion())),
        (Milestone.CONVERTED, Reached(begun())),
        (Milestone.TRANSCRIBE, Reached(advance(segment(0, "first")))),
        (Milestone.TRANSCRIBE, Deferred(0.0, advance(segment(0, "first")))),
        (Milestone.CREATED, Hopeless(StopCode.NO_AUDIO, "none")),
        (Milestone.CREATED, ValueError("bad")),
    ],
)


async def come_too_late(
    house: House, milestone: Milestone, go_on: trio.Event, lose: Callable[[UUID], Awaitable[None]]
) -> list[str]:
    """Let a stage come to its end after another claim got its record; return what was told of it, loudly."""
    queue = house.queue
    assert isinstance(queue, Queue)
    record = await house.record(milestone)
    async with house.serving():
        await until(lambda: sum(house.lanes[lane].busy for lane in EVERY_LANE) == 1)
        await lose(record)
        second = await queue.elsewhere().claim()
        assert second.record_id == record
        before = await queue.everything(record)
        with capture_logs() as entries:
            go_on.set()
            await until(lambda: house.marks() == {"lost": 1})
        assert await queue.everything(record) == before, "the record is as its new holder has it"
        house.stop.ask("test")
    settled = await queue.elsewhere().settle(second, Reached(FOUND[milestone]))
    assert settled == Settled(), "the second one's result is written"
    return [event for event, _ in loud(entries)]


def line_that_stays(go_on: trio.Event, outcome: Outcome | ValueError) -> tuple[Told, ...]:
    """Return a line whose stages come to that outcome once they may go on."""

    async def stay(record: Record, tools: Tools) -> Outcome:
        await go_on.wait()
        if isinstance(outcome, ValueError):
            raise outcome
        return outcome

    return tuple(Told(takes=stage.takes, play=stay) for stage in a_line())


@EVERY_OUTCOME
async def test_s_c2_the_claim_went_to_another(
    queue: Queue, tmp_path: Path, milestone: Milestone, outcome: Outcome | ValueError
) -> None:
    """The lease ran out under the stage and another process claimed the record: nothing is written."""
    go_on = trio.Event()
    house = a_house(queue, tmp_path, line_that_stays(go_on, outcome))
    told = await come_too_late(house, milestone, go_on, queue.lapse)
    assert told == (["record.failed"] if isinstance(outcome, ValueError) else []) + ["claim.lost"]


@EVERY_OUTCOME
async def test_s_c3_the_flag_was_lifted_and_another_claimed(
    queue: Queue, tmp_path: Path, milestone: Milestone, outcome: Outcome | ValueError
) -> None:
    """A person stopped and lifted the record under the stage, and another claimed it: nothing is written."""
    go_on = trio.Event()

    async def stop_and_lift(record: UUID) -> None:
        await owner.stop(queue.database, record, queue.owner, "anna")
        await owner.lift(queue.database, record, queue.owner, "anna")

    house = a_house(queue, tmp_path, line_that_stays(go_on, outcome))
    told = await come_too_late(house, milestone, go_on, stop_and_lift)
    assert told == (["record.failed"] if isinstance(outcome, ValueError) else []) + ["claim.lost"]


async def test_s_c2_a_partial_text_said_on_the_cancel_is_no_success(queue: Queue, tmp_path: Path) -> None:
    """The claim went to another; a stage that turns its cancel into an outcome still writes nothing."""

    async def swallow(record: Record, tools: Tools) -> Outcome:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return Reached(advance(segment(0, "half a text")))

    line = (*a_line()[:2], Told(takes=Milestone.TRANSCRIBE, play=swallow))
    house = a_house(queue, tmp_path, line)
    record = await house.record(Milestone.TRANSCRIBE)
    taken = await house.take()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.attempts.run, taken)
        await trio.testing.wait_all_tasks_blocked(0.05)
        await queue.lapse(record)
        second = await queue.elsewhere().claim()
        await house.keeper.renew()
    row = await queue.row(record)
    assert (row["milestone"], row["claim_token"]) == ("transcribe", second.token)
    assert await queue.segments(record) == []
    assert house.marks() == {"lost": 1}


async def test_s_c3_a_record_lifted_and_not_claimed_again_is_not_the_first_one_s(
    queue: Queue, tmp_path: Path
) -> None:
    """The lift alone took the claim away."""
    house = a_house(queue, tmp_path)
    record = await house.record()
    taken = await house.take()
    await owner.stop(queue.database, record, queue.owner, "anna")
    await owner.lift(queue.database, record, queue.owner, "anna")
    before = await queue.everything(record)
    await house.attempts.run(taken)
    assert await queue.everything(record) == before
    assert house.marks() == {"lost": 1}


@pytest.mark.parametrize("verb", [owner.stop, owner.delete])
async def test_s_p10_a_person_ends_the_work_of_a_running_stage(
    queue: Queue, tmp_path: Path, told: list[EventDict], verb: Callable[..., Awaitable[object]]
) -> None:
    """The stage is cancelled as a lost claim, nothing is written, and nobody gets the record."""
    cancelled = trio.Event()

    async def note(record: Record, tools: Tools) -> Outcome:
        try:
            return await hang(record, tools)
        finally:
            cancelled.set()

    settings = evolve(SETTINGS, renew_seconds=0.05)
    house = a_house(queue, tmp_path, a_line(play=note), settings=settings)
    record = await house.record()
    async with house.serving(keeping=True):
        await until(lambda: house.lanes["convert"].busy == 1)
        await verb(queue.database, record, queue.owner, "anna")
        before = await queue.everything(record)
        with trio.fail_after(5):
            await cancelled.wait()
        await until(lambda: house.marks() == {"lost": 1})
        assert await queue.everything(record) == before
        assert await queue.ask() == NoWork()
    assert loud(told) == [("claim.lost", "warning")]
    readiness = await read_readiness(queue.database, record, queue.owner)
    assert isinstance(readiness, NotFound if verb is owner.delete else Readiness)


# The verdict's order, with real scopes and real cancels.


async def _play_out(house: House, taken: Taken, circumstance: str) -> None:
    """Run an attempt in a ring which the circumstance strikes after a second."""
    async with trio.open_nursery() as ring:
        ring.start_soon(house.attempts.run, taken)
        await trio.sleep(1)
        match circumstance:
            case "lease":
                taken.hold.lose()
            case "stop":
                house.stop.ask("test")
                ring.cancel_scope.cancel()
            case "crash":
                raise CrashError
            case _:
                pass


@pytest.mark.parametrize(
    ("ended_by", "circumstance", "end"),
    # Where a scope of ours caught all there was, "cancelled" is that case.
    [cell for cell in cells() if cell[0] != "nothing" or cell[1] == "none"],
)
async def test_every_way_out_of_a_stage_comes_to_its_end(
    autojump_clock: MockClock,
    told: list[EventDict],
    tmp_path: Path,
    ended_by: str,
    circumstance: str,
    end: str,
) -> None:
    """The table of the verdict, through a whole attempt; and what is not the stage's own goes on rising."""

    async def play(record: Record, tools: Tools) -> Outcome:
        if ended_by in ("returned", "own", "own deadline", "interrupt", "exit") and circumstance != "none":
            # It comes to its own end, whatever has been cancelled meanwhile.
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
        if ended_by in RAISING:
            await RAISING[ended_by]()
        return Reached(FOUND[record.milestone]) if ended_by == "returned" else cast("Outcome", None)

    seconds = 1.5 if circumstance == "limit" else 600.0
    queue = MemoryQueue()
    house = a_house(queue, tmp_path, a_line(play=play, seconds=seconds))
    record = await house.record()
    taken = await house.take()
    rose: BaseException | None = None
    try:
        await _play_out(house, taken, circumstance)
    except BaseException as error:  # noqa: BLE001 - what rises is the question
        rose = error
    written = [type(ending).__name__ for ending in house.door.written]
    assert written == ([] if end == "ClaimLost" else [end])
    counts = {"Reached": 0, "GivenBack": 0}
    assert queue.now(record).failures == counts.get(end, 1)
    assert (queue.now(record).claim_token is None) == (end != "ClaimLost")
    leaves = set(_leaves(rose))
    expected: set[type[BaseException]] = {CrashError} if circumstance == "crash" else set()
    if ended_by == "interrupt":
        expected.add(KeyboardInterrupt)
    if ended_by in ("exit", "cancelled + exit"):
        expected.add(SystemExit)
    assert leaves == expected, "no error of a stage rises, and nothing else is kept back"
    assert not taken.hold.unpaid


def _leaves(error: BaseException | None) -> Iterator[type[BaseException]]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    elif error is not None:
        yield type(error)


async def test_a_cancel_by_ring_and_lease_at_once_is_a_lost_claim(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    """The lease is asked first; the ring's cancel goes on to the ring, which catches it."""
    queue = MemoryQueue()
    house = a_house(queue, tmp_path, a_line(play=hang))
    record = await house.record()
    taken = await house.take()
    went_on = False
    async with trio.open_nursery() as ring:

        async def work() -> None:
            nonlocal went_on
            await house.attempts.run(taken)
            went_on = True

        ring.start_soon(work)
        await trio.sleep(1)
        house.stop.ask("test")
        taken.hold.lose()
        ring.cancel_scope.cancel()
    assert ring.cancel_scope.cancelled_caught
    assert not went_on, "the cancel was not swallowed"
    assert house.marks() == {"lost": 1}
    assert queue.now(record).failures == 1


async def test_s_p1_what_a_stage_said_during_a_stop_stands(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """In the grace one returns and another raises: the outcome is settled, the error is a counted failure."""

    async def finish(record: Record, tools: Tools) -> Outcome:
        await house.stop.wait()
        await trio.sleep(0.05)
        if record.title == "bad":
            with trio.fail_after(0.01):  # a deadline of its own is no cancel of ours
                await trio.sleep_forever()
        return await reach(record, tools)

    house = a_house(queue, tmp_path, a_line(play=finish), settings=evolve(SETTINGS, grace_seconds=10.0))
    good, bad = await house.record(), await house.record(title="bad", failures=1)
    async with house.serving(workers=2):
        await until(lambda: house.lanes["convert"].busy == 2)
        started = trio.current_time()
    assert trio.current_time() - started < 5, "nobody waits for the rest of the grace"
    assert (await queue.row(good))["milestone"] == "converted"
    row = await queue.row(bad)
    assert (row["milestone"], row["failures"]) == ("created", 2)
    assert house.marks() == {"success": 1, "failure": 1}
    assert loud(told) == [("record.failed", "warning")]


async def test_s_p1_an_error_beside_the_cancel_of_a_stop_is_a_failure(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """No Cancelled is among its causes."""
    house = a_house(queue, tmp_path, a_line(play=play_out("cancelled + own")))
    record = await house.record()
    async with house.serving():
        await until(lambda: house.lanes["convert"].busy == 1)
        await trio.sleep(0.1)
    event = (await queue.events(record))[-1]
    assert (event["kind"], event["detail"]["cause"]) == ("failed", "ValueError: own")
    assert loud(told) == [("record.failed", "warning")]
    assert (await queue.row(record))["failures"] == 1


async def test_a_give_back_is_settled_also_after_a_second_signal(queue: Queue, tmp_path: Path) -> None:
    """The settle is shielded from every cancel around it, and waits until the database is back."""
    house = a_house(queue, tmp_path, a_line(play=hang), settings=evolve(SETTINGS, grace_seconds=60.0))
    record = await house.record(failures=1)
    house.door.then("settle", away, away)
    async with house.serving() as work:
        await until(lambda: house.lanes["convert"].busy == 1)
        house.stop.ask("first")
        house.stop.ask("second")
        await until(lambda: house.door.calls["settle"] == 1)
        work.cancel_scope.cancel()
    row = await queue.row(record)
    assert (row["failures"], row["claim_token"]) == (1, None)
    assert house.marks() == {"given_back": 1}


# What becomes of a settle.


async def test_a_settle_whose_answer_was_lost_is_written_once(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """It is asked again, found by its token, and told once; the outage is two lines."""
    house = a_house(queue, tmp_path)
    record = await house.record()
    house.door.then("settle", answer_lost, away)
    await house.attempt()
    assert (await queue.kinds(record)).count("reached") == 1
    assert house.marks() == {"success": 1}
    events = [entry["event"] for entry in told if entry["log_level"] != "debug"]
    assert events == ["database.away", "database.returned", "record.reached"]


async def test_a_result_is_kept_through_an_outage(autojump_clock: MockClock, tmp_path: Path) -> None:
    """Tried again every half second, past the length of a lease, for as long as the settle may take."""
    queue = MemoryQueue()
    house = a_house(queue, tmp_path, settings=evolve(SETTINGS, settle_seconds=900.0))
    record = await house.record()
    house.door.then("settle", *[away] * int(800 / SETTLE_PAUSE_SECONDS))
    await house.attempt()
    assert queue.now(record).milestone is Milestone.CONVERTED
    assert trio.current_time() == 800


async def test_a_result_that_no_database_takes_is_lost_and_no_success(
    autojump_clock: MockClock, tmp_path: Path, told: list[EventDict]
) -> None:
    """After the settle's patience: one ERROR, the mark of a lost claim, the attempt spent."""
    house = a_house(MemoryQueue(), tmp_path)
    await house.record()
    house.door.always["settle"] = late(1000)
    house.door.then("settle", away)
    taken = await house.attempt()
    assert trio.current_time() == SETTINGS.settle_seconds
    assert house.marks() == {"lost": 1}
    assert [event for event, _ in loud(told)] == ["database.away", "settle.given_up"]
    assert not taken.hold.unpaid, "only a give-back is owed"


async def test_s_s3_a_settle_refused_for_its_data_becomes_a_failure(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """NUL in a text: a counted failure with its reason, nothing of the text is written, all goes on."""
    texts = iter(["with a NUL\0 in it", "half a character \ud800", "a text"])

    async def say(record: Record, tools: Tools) -> Outcome:
        return Reached(advance(segment(0, next(texts))))

    line = (*a_line()[:2], Told(takes=Milestone.TRANSCRIBE, play=say))
    house = a_house(queue, tmp_path, line)
    record = await house.record(Milestone.TRANSCRIBE)
    for count in (1, 2):
        await house.attempt()
        row = await queue.row(record)
        assert (row["milestone"], row["failures"], row["claim_token"]) == ("transcribe", count, None)
        event = (await queue.events(record))[-1]
        assert event["kind"] == "failed"
        assert event["detail"]["cause"].startswith("DataRefused: the database")
        assert await queue.segments(record) == []
    assert loud(told) == [("settle.refused_for_data", "warning")] * 2
    await house.attempt()
    assert (await queue.row(record))["milestone"] == "done"
    assert house.marks() == {"failure": 2, "success": 1}


async def test_a_failure_that_is_refused_too_is_left_to_its_lease(
    autojump_clock: MockClock, tmp_path: Path, told: list[EventDict]
) -> None:
    """No loop without end: the attempt stays counted, so that the limit comes."""
    queue = MemoryQueue()
    house = a_house(queue, tmp_path)
    record = await house.record()
    house.door.always["settle"] = raising(DataRefused("refused"))
    taken = await house.attempt()
    assert house.door.calls["settle"] == 2
    assert house.marks() == {"lost": 1}
    assert queue.now(record).failures == 1
    assert not taken.hold.owed, "a failure of the record's own is not given back at an exit"


async def test_a_fault_of_ours_in_a_settle_is_a_crash_and_counted(queue: Queue, tmp_path: Path) -> None:
    """A record whose own work makes our code raise must not be given back for ever."""
    outcome = Reached(cast("Findings", "nothing that any stage may find"))
    line = (a_line()[0], Told(takes=Milestone.CONVERTED, play=answer(outcome)), a_line()[2])
    house = a_house(queue, tmp_path, line)
    record = await house.record(Milestone.CONVERTED)
    with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesGroup(AssertionError))):
        async with house.serving():
            await trio.sleep(20)
    house.keeper.owe()
    assert house.debts.open_at(0) == []
    assert (await queue.row(record))["failures"] == 1


# Retries and their end.


async def test_s_d1_a_stage_that_fails_every_time(
    queue: Queue, tmp_path: Path, told: list[EventDict]
) -> None:
    """With limit N it runs N times; claim N+1 sets the flag and does not run it; the next gets no work."""
    runs = 0

    async def fall(record: Record, tools: Tools) -> Outcome:
        nonlocal runs
        runs += 1
        raise StageFailed(f"fall {runs}")

    house = a_house(queue, tmp_path, a_line(play=fall))
    record = await house.record()
    limit = house.settings.failures_limit
    for run in range(1, limit + 1):
        taken = await house.attempt()
        assert (taken.record.failures, runs) == (run, run)
        assert (await queue.row(record))["stop_code"] is None
    taken = await house.attempt()
    assert runs == limit
    assert taken.record.failures == limit + 1
    row = await queue.row(record)
    assert (row["stop_code"], row["milestone"], row["failures"]) == (
        "attempts_exhausted",
        "created",
        limit + 1,
    )
    assert row["stop_reason"] == "3 attempts in a row came to no outcome; the last one: StageFailed: fall 3"
    assert await queue.ask() == NoWork()
    readiness = await read_readiness(queue.database, record, queue.owner)
    assert isinstance(readiness, Readiness)
    assert readiness.stop is not None
    assert readiness.milestone is Milestone.CREATED
    assert loud(told) == [("record.failed", "warning")] * limit + [("record.stopped", "error")]
    assert not any(entry.get("exc_info") for entry in told), "the sentence of a failure we know is enough"
    assert house.marks() == {"failure": limit, "hopeless": 1}


async def test_the_reason_says_so_when_the_last_claim_has_no_end(queue: Queue, tmp_path: Path) -> None:
    """Whoever held it died, or lost its lease; nobody was left to say why."""
    house = a_house(queue, tmp_path)
    record = await house.record(failures=house.settings.failures_limit - 1)
    await queue.claim()
    await queue.lapse(record)
    await house.attempt()
    reason = (await queue.row(record))["stop_reason"]
    assert reason.endswith("the last one has no end: the process died, or lost its lease")


async def test_a_record_that_is_overdue_at_its_claim_is_stopped(queue: Queue, tmp_path: Path) -> None:
    """Its stage does not get it."""
    house = a_house(queue, tmp_path, a_line(play=fail(AssertionError("it ran")), whole_seconds=100.0))
    record = await house.record(milestone_seconds=101.0)
    await house.attempt()
    row = await queue.row(record)
    assert (row["stop_code"], row["stop_reason"]) == (
        "overdue",
        "101 s of work at created, more than the 100 s it may take",
    )
    assert house.marks() == {"hopeless": 1}


# What is told of a failure.


@pytest.mark.parametrize(
    ("error", "traced"),
    [
        (StageFailed("known"), False),
        (MeansAway("known"), False),
        (ExceptionGroup("from a nursery", [StageFailed("known")]), False),
        (ExceptionGroup("from a nursery", [StageFailed("one"), StageFailed("two")]), True),
        (ValueError("nobody knew"), True),
        (ExceptionGroup("from a nursery", [StageFailed("known"), ValueError("nobody knew")]), True),
    ],
)
async def test_s_f3_a_failure_is_one_warning_and_one_mark(
    autojump_clock: MockClock, tmp_path: Path, told: list[EventDict], error: Exception, *, traced: bool
) -> None:
    """With a traceback where nobody expected it, or where one sentence is not all of it."""
    house = a_house(MemoryQueue(), tmp_path, a_line(play=fail(error)))
    await house.record()
    await house.attempt()
    [entry] = [entry for entry in told if entry["log_level"] != "debug"]
    assert (entry["event"], entry["log_level"]) == ("record.failed", "warning")
    assert bool(entry["exc_info"]) == traced
    assert house.marks() == {"failure": 1}


async def test_s_f3_the_failure_mark_for_a_fault_past_the_outcome_is_not_given(
    autojump_clock: MockClock, tmp_path: Path, told: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a finished attempt cannot be removed: the outcome stands, the fault has its line."""
    house = a_house(MemoryQueue(), tmp_path)
    await house.record()
    taken = await house.take()

    def refuse(_: Path) -> None:
        raise PermissionError("not this folder")

    monkeypatch.setattr(Path, "rmdir", refuse)
    await house.attempts.run(taken)
    assert loud(told) == [("record.cleanup_failed", "warning")]
    assert house.marks() == {"success": 1}


async def test_an_error_of_a_cleanup_is_told_and_the_give_back_stands(
    autojump_clock: MockClock, tmp_path: Path, told: list[EventDict]
) -> None:
    """One WARNING of its own, no failure."""
    house = a_house(MemoryQueue(), tmp_path, a_line(play=play_out("cleanup")))
    await house.record()
    async with house.serving():
        await until(lambda: house.lanes["convert"].busy == 1)
        await trio.sleep(1)
    assert loud(told) == [("record.cleanup_failed", "warning")]
    assert house.marks() == {"given_back": 1}


async def test_a_failure_on_missing_means_tells_the_lane(
    autojump_clock: MockClock, tmp_path: Path, told: list[EventDict]
) -> None:
    """Also from inside a nursery; an outcome tells it that the means are there."""
    plays = iter(
        [
            fail(MeansAway("no model")),
            reach,
            fail(ExceptionGroup("from a nursery", [MeansAway("no model")])),
            fail(ValueError("another matter")),
            fail(MeansAway("no model")),
        ]
    )

    async def play_next(record: Record, tools: Tools) -> Outcome:
        return await next(plays)(record, tools)

    house = a_house(MemoryQueue(), tmp_path, a_line(play=play_next))
    closed = []
    for _ in range(5):
        await house.record()
        await house.attempt()
        closed.append(house.lanes["convert"].closed_because)
        house.queue.claims.rows.clear()  # type: ignore[union-attr]  # the rows in memory
    assert closed == [None, None, None, None, "no model"]


async def test_who_is_asked_how_long_an_attempt_may_take(autojump_clock: MockClock, tmp_path: Path) -> None:
    """The stage and the settle, for the watchdog."""
    house = a_house(MemoryQueue(), tmp_path, a_line(seconds=100.0))
    await house.record()
    assert house.attempts.longest_seconds(await house.take()) == 100.0 + SETTINGS.settle_seconds

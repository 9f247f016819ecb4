"""The milestone guard: work and asked delays count, waiting and downtime do not; judged in the settle."""

from datetime import timedelta
from uuid import UUID

import pytest

from storage import owner
from storage.claim import NoWork
from storage.claims import Settled
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached
from storage.record import Milestone, StopCode
from tests.builders import NOON, Queue, advance, segment

LIMIT = 100.0
OVERDUE = Settled(stopped=StopCode.OVERDUE)


async def in_progress(queue: Queue, record_id: UUID, *, held: float, delay: float) -> Settled:
    """Let one attempt of a recognition hold the record for so long and defer for so long."""
    await queue.come_due(record_id)
    claim = await queue.claim()
    assert claim.record_id == record_id
    await queue.held_for(record_id, held)
    settled = await queue.settle(
        claim, Deferred(delay, advance(), "RUNNING"), {"state": "RUNNING"}, limit=LIMIT
    )
    assert isinstance(settled, Settled)
    return settled


async def test_s_p8_in_progress_for_ever_is_overdue(queue: Queue) -> None:
    """The settle that takes work and delays past the limit stops the record, with what it last heard."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    for _ in range(3):
        assert await in_progress(queue, record_id, held=1, delay=30) == Settled()
    assert await in_progress(queue, record_id, held=1, delay=30) == OVERDUE
    row, event = await queue.row(record_id), (await queue.events(record_id))[-1]
    assert (row["stop_code"], row["stopped_by"], row["milestone"]) == ("overdue", "one", "transcribe")
    assert row["stop_reason"] == (
        "more than 100 s of work and waiting at one milestone; the operation last said: RUNNING"
    )
    assert (row["claim_token"], row["lease_until"], row["wake_at"]) == (None, None, None)
    assert row["milestone_seconds"] == pytest.approx(124, abs=2)
    assert (event["kind"], event["settles"]) == ("stopped", True)
    assert event["detail"] == {
        "state": "RUNNING",
        "code": "overdue",
        "reason": row["stop_reason"],
        "failures_reset": True,
    }
    assert await queue.ask() == NoWork()


async def test_s_p8_waiting_for_a_worker_does_not_count(queue: Queue) -> None:
    """A record that waited for years, as new or past its delay, has spent what its attempts spent."""
    record_id = await queue.record(Milestone.TRANSCRIBE, created_at=NOON, milestone_since=NOON)
    long_ago = NOON + timedelta(days=1)
    for _ in range(3):
        await queue.change(record_id, wake_at=long_ago)
        assert await in_progress(queue, record_id, held=1, delay=10) == Settled()
    assert (await queue.row(record_id))["milestone_seconds"] == pytest.approx(33, abs=2)


async def test_s_p8_a_downtime_does_not_count(queue: Queue) -> None:
    """A process that died and was away for long is no work of the record's: the next claim starts afresh."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    assert await in_progress(queue, record_id, held=1, delay=0) == Settled()
    await queue.claim()
    await queue.held_for(record_id, 100_000)
    await queue.lapse(record_id)
    assert await in_progress(queue, record_id, held=1, delay=10) == Settled()
    assert (await queue.row(record_id))["milestone_seconds"] == pytest.approx(12, abs=2)


async def test_failures_and_give_backs_count_but_are_not_judged(queue: Queue) -> None:
    """Their seconds add up; the stop comes at a deferring settle, or from whoever claims."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    for ending in (Failed("broken"), GivenBack("stop"), Failed("broken")):
        claim = await queue.claim()
        await queue.held_for(record_id, 60)
        assert await queue.settle(claim, ending, limit=LIMIT) == Settled()
    assert (await queue.row(record_id))["milestone_seconds"] == pytest.approx(180, abs=2)
    claim = await queue.claim()
    too_late = Hopeless(StopCode.OVERDUE, "180 s of work at transcribe, more than the 100 s it may take")
    assert await queue.settle(claim, too_late, limit=LIMIT) == OVERDUE


async def test_reaching_the_milestone_late_is_reaching_it(queue: Queue) -> None:
    """Work that is finished past the limit is finished: it is written, and the guard starts anew."""
    record_id = await queue.record(Milestone.TRANSCRIBE, milestone_seconds=5000.0)
    claim = await queue.claim()
    assert await queue.settle(claim, Reached(advance(segment(0, "late"))), limit=LIMIT) == Settled()
    row = await queue.row(record_id)
    assert (row["milestone"], row["recognised_text"], row["milestone_seconds"]) == ("done", "late", 0.0)


async def test_the_limit_may_be_reached_but_not_passed(queue: Queue) -> None:
    """More than the limit is too much; as much as the limit is not (to the time that the test takes)."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    assert await in_progress(queue, record_id, held=0, delay=LIMIT - 3) == Settled()
    assert await in_progress(queue, record_id, held=0, delay=6) == OVERDUE


async def test_what_an_overdue_attempt_found_is_kept(queue: Queue) -> None:
    """The stop comes with the settle, so the last slice is not recognised twice after a lift."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    claim = await queue.claim()
    await queue.held_for(record_id, 2 * LIMIT)
    found = advance(segment(0, "kept"), recognised_seconds=60.0)
    assert await queue.settle(claim, Deferred(0, found), limit=LIMIT) == OVERDUE
    assert [row["text"] for row in await queue.segments(record_id)] == ["kept"]
    assert await owner.lift(queue.database, record_id, None, "anna") is owner.Verdict.DONE
    row = await queue.row(record_id)
    assert (row["recognised_seconds"], row["operation"]) == (60.0, {"slice": 1})
    assert (row["milestone_seconds"], row["failures"]) == (0.0, 0)
    assert await in_progress(queue, record_id, held=1, delay=30) == Settled()


async def test_a_lift_between_two_settles_starts_the_guard_anew(queue: Queue) -> None:
    """What was spent before the lift is not held against the record."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    for _ in range(4):
        assert await in_progress(queue, record_id, held=1, delay=60) == Settled()
        await owner.stop(queue.database, record_id, None, "anna")
        await owner.lift(queue.database, record_id, None, "anna")


async def test_nothing_ticks(queue: Queue) -> None:
    """A record past its limit is stopped by a settle or a claimer only: polls and wakes change nothing."""
    record_id = await queue.record(Milestone.TRANSCRIBE, milestone_seconds=5000.0, created_at=NOON)
    before = await queue.everything(record_id)
    for _ in range(3):
        await queue.claims.wake()
        assert await queue.ask(["convert"]) == NoWork()
    assert await queue.everything(record_id) == before

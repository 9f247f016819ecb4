"""Only the holder of a claim writes its end: once, whole, its own columns and the count with it."""

import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import trio
from attrs import evolve, field, frozen

from storage import owner
from storage.claim import Claim, ClaimLost, NoWork
from storage.claims import Settled
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.errors import DataRefused
from storage.record import Findings, Milestone, Segment, StopCode, Word
from tests.builders import (
    EVERY_LANE,
    FAILURES_LIMIT,
    FOUND,
    LANES,
    NEXT,
    NOON,
    Queue,
    Written,
    advance,
    ask,
    begun,
    conversion,
    put,
    segment,
)

Verb = Callable[[Queue, UUID], Awaitable[None]]

HOPELESS = Hopeless(StopCode.NO_AUDIO, "no audio track in it")
GIVEN_BACK = GivenBack("the service was stopped")


def endings_at(milestone: Milestone) -> tuple[Written, ...]:
    """Every end that may be written at a milestone."""
    findings = FOUND[milestone]
    return (
        Reached(findings),
        Deferred(30, findings),
        Deferred(0, findings),
        HOPELESS,
        Failed("broken"),
        TimedOut("slow"),
        GIVEN_BACK,
    )


async def claim_of(queue: Queue, record_id: UUID) -> Claim:
    """Claim, and see that it is this record."""
    claim = await queue.claim()
    assert claim.record_id == record_id
    return claim


async def test_s_c1_the_owners_edit_outlives_the_settle(queue: Queue) -> None:
    """What the owner wrote under a running stage is there beside the stage's result, at every milestone."""
    edited = {
        "title": "The true title",
        "description": "what it is of",
        "topics": ["one", "two"],
        "asked_language": "en",
        "edition": 7,
    }
    record_id = await queue.record()
    for milestone, findings in FOUND.items():
        claim = await claim_of(queue, record_id)
        await queue.change(record_id, **edited)
        before = await queue.row(record_id)
        assert await queue.settle(claim, Reached(findings)) == Settled()
        row = await queue.row(record_id)
        assert row["milestone"] == NEXT[milestone]
        assert {name: row[name] for name in edited} == edited
        edited = edited | {"title": f"edited at {milestone}"}
        assert {name for name in row if row[name] != before[name]} <= OWN_COLUMNS[milestone] | THE_QUEUES
    assert (await queue.row(record_id))["audio_path"] == conversion().audio_path
    assert (await queue.row(record_id))["recognised_text"] == "found"


THE_QUEUES = {
    "milestone",
    "milestone_since",
    "milestone_seconds",
    "lane",
    "failures",
    "wake_at",
    "claim_token",
    "claimed_by",
    "claimed_at",
    "lease_seconds",
    "lease_until",
}
OWN_COLUMNS = {
    Milestone.CREATED: {"audio_path", "declared_seconds", "decoded_seconds", "audio_warnings"},
    Milestone.CONVERTED: {
        "recogniser",
        "operation",
        "recognised_seconds",
        "recognised_text",
        "found_language",
    },
    Milestone.TRANSCRIBE: {"operation", "recognised_seconds", "found_language", "recognised_text"},
}


async def test_s_e2_a_settle_leaves_the_owner_as_it_was(queue: Queue) -> None:
    """Whatever the end and the milestone, the record is still its owner's."""
    for milestone in NEXT:
        for ending in endings_at(milestone):
            record_id = await queue.record(milestone)
            assert isinstance(await queue.settle(await claim_of(queue, record_id), ending), Settled)
            assert (await queue.row(record_id))["owner_id"] == queue.owner
            await owner.delete(queue.database, record_id, None, "test")


async def test_every_end_touches_the_columns_of_its_stage_and_of_the_queue_alone(queue: Queue) -> None:
    """A settle that reached nothing writes none of the stage's columns; all end the claim whole."""
    stop = {"stop_code", "stop_reason", "stopped_at", "stopped_by"}
    for milestone in NEXT:
        for ending in endings_at(milestone):
            record_id = await queue.record(milestone)
            claim = await claim_of(queue, record_id)
            before = await queue.row(record_id)
            await queue.settle(claim, ending, retry_delay=10)
            after = await queue.row(record_id)
            allowed = set(THE_QUEUES)
            allowed |= stop if isinstance(ending, Hopeless) else set()
            allowed |= OWN_COLUMNS[milestone] if isinstance(ending, Reached | Deferred) else set()
            assert {name for name in after if after[name] != before[name]} <= allowed, ending
            assert after["claim_token"] is None
            await owner.delete(queue.database, record_id, None, "test")


async def _reissue(queue: Queue, record_id: UUID) -> None:
    await queue.lapse(record_id)
    assert (await queue.elsewhere().claim()).record_id == record_id


async def _stop(queue: Queue, record_id: UUID) -> None:
    assert await owner.stop(queue.database, record_id, queue.owner, "anna") is owner.Verdict.DONE


async def _lift(queue: Queue, record_id: UUID) -> None:
    await _stop(queue, record_id)
    assert await owner.lift(queue.database, record_id, queue.owner, "anna") is owner.Verdict.DONE


async def _lift_and_claim(queue: Queue, record_id: UUID) -> None:
    await _lift(queue, record_id)
    assert (await queue.elsewhere().claim()).record_id == record_id


async def _delete(queue: Queue, record_id: UUID) -> None:
    assert await owner.delete(queue.database, record_id, queue.owner, "anna") is owner.Verdict.DONE


async def _undelete(queue: Queue, record_id: UUID) -> None:
    await _delete(queue, record_id)
    assert await owner.undelete(queue.database, record_id, queue.owner, "anna") is owner.Verdict.DONE


async def _undelete_and_claim(queue: Queue, record_id: UUID) -> None:
    await _undelete(queue, record_id)
    assert (await queue.elsewhere().claim()).record_id == record_id


async def _purge(queue: Queue, record_id: UUID) -> None:
    await ask(queue.database, "DELETE FROM records WHERE id = %s", [record_id])


async def _settle_elsewhere(queue: Queue, record_id: UUID) -> None:
    await queue.lapse(record_id)
    milestone = Milestone((await queue.row(record_id))["milestone"])
    assert await queue.settle(await queue.elsewhere().claim(), Reached(FOUND[milestone])) == Settled()


WAYS_TO_LOSE: tuple[Verb, ...] = (
    _reissue,
    _stop,
    _lift,
    _lift_and_claim,
    _delete,
    _undelete,
    _undelete_and_claim,
    _purge,
    _settle_elsewhere,
)


async def assert_refused(queue: Queue, milestone: Milestone, lose: Verb) -> None:
    """Lose a claim and see every end of it, and its renewal, refused with nothing changed."""
    record_id = await queue.record(milestone)
    claim = await claim_of(queue, record_id)
    await lose(queue, record_id)
    before = await everything_of(queue, record_id)
    for ending in endings_at(milestone):
        assert await queue.settle(claim, ending, limit=0.0, retry_delay=9.0) == ClaimLost(), (lose, ending)
        assert await everything_of(queue, record_id) == before, (lose, ending)
    assert await queue.claims.give_back(claim.token, "late") is False
    assert await queue.claims.renew([claim.token]) == {}
    assert await everything_of(queue, record_id) == before, lose
    await ask(queue.database, "DELETE FROM records WHERE id = %s", [record_id])


async def everything_of(queue: Queue, record_id: UUID) -> tuple[object, ...]:
    """All that the database holds of a record, also when there is none."""
    row = await ask(queue.database, "SELECT * FROM records WHERE id = %s", [record_id])
    return row, await queue.events(record_id), await queue.segments(record_id)


async def test_s_c2_the_claim_went_to_another_and_nothing_is_written(queue: Queue) -> None:
    """The first holder's end, whichever it is, leaves the record as the second holder has it."""
    for milestone in NEXT:
        await assert_refused(queue, milestone, _reissue)


async def test_s_c3_lifted_and_claimed_by_another_and_nothing_is_written(queue: Queue) -> None:
    """Stopped, lifted and claimed under a running stage: the first stage's end is refused."""
    for milestone in NEXT:
        await assert_refused(queue, milestone, _lift_and_claim)


async def test_every_end_is_refused_however_the_claim_was_lost(queue: Queue) -> None:
    """No way to lose a claim lets any end of it, a give-back or a renewal write anything."""
    for lose in WAYS_TO_LOSE:
        for milestone in NEXT:
            await assert_refused(queue, milestone, lose)


async def test_s_s13_the_guard_asks_for_the_token_and_nothing_else(queue: Queue) -> None:
    """Every end after a lapsed lease that nobody took is written, woken or not; the other three are not."""
    for milestone in NEXT:
        for ending in endings_at(milestone):
            for woken in (False, True):
                record_id = await queue.record(milestone)
                claim = await claim_of(queue, record_id)
                await queue.lapse(record_id)
                if woken:
                    await queue.claims.wake()
                assert isinstance(await queue.settle(claim, ending), Settled), (ending, woken)
                assert (await queue.row(record_id))["claim_token"] is None
                await owner.delete(queue.database, record_id, None, "test")
        for lose in (_lift, _stop, _delete):
            await assert_refused(queue, milestone, lose)


async def test_a_foreign_token_ends_nothing(queue: Queue) -> None:
    """A claim with the right record and another's token is lost, and so is one with the right token alone."""
    first, second = await queue.records(2)
    one, two = await queue.claim(), await queue.claim()
    before = [await queue.everything(record_id) for record_id in (first, second)]
    for ending in endings_at(Milestone.CREATED):
        if not isinstance(ending, GivenBack):  # guarded by the token alone: tested below
            for mixed in (evolve(one, token=two.token), evolve(two, token=one.token)):
                assert await queue.settle(mixed, ending) == ClaimLost(), ending
    assert [await queue.everything(record_id) for record_id in (first, second)] == before


async def test_s_p6_a_deferring_stage_starts_its_count_anew(queue: Queue) -> None:
    """The count is zero, the milestone kept, the find saved, and the record due when its delay is over."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    for _ in range(2):
        await queue.settle(await claim_of(queue, record_id), Failed("broken"))
    claim = await claim_of(queue, record_id)
    assert (await queue.row(record_id))["failures"] == 3
    found = advance(segment(0, "half"), recognised_seconds=150.0)
    assert await queue.settle(claim, Deferred(0.6, found, "half"), {"state": "half"}) == Settled()
    row = await queue.row(record_id)
    assert (row["failures"], row["milestone"], row["lane"]) == (0, "transcribe", "whisper")
    assert (row["recognised_seconds"], row["operation"]) == (150.0, {"slice": 1})
    assert [found["text"] for found in await queue.segments(record_id)] == ["half"]
    assert await queue.ask() == NoWork()
    await queue.claims.wake()
    assert await queue.ask() == NoWork()
    with trio.fail_after(5):
        claim = await soon(queue)
    events = await queue.events(record_id)
    assert [event["kind"] for event in events[-3:]] == ["claimed", "deferred", "claimed"]
    assert events[-1]["at"] - events[-2]["at"] >= timedelta(seconds=0.59)
    assert (claim.record_id, (await queue.row(record_id))["failures"]) == (record_id, 1)


async def soon(queue: Queue) -> Claim:
    """Ask until there is work."""
    while True:
        claim = await queue.ask()
        if isinstance(claim, Claim):
            return claim
        await trio.sleep(0.02)


async def test_deferring_without_a_delay_makes_the_record_ready_at_once(queue: Queue) -> None:
    """A next slice waits for nothing but its turn."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    assert await queue.settle(await queue.claim(), Deferred(0, advance())) == Settled()
    assert (await queue.row(record_id))["wake_at"] is None
    assert (await queue.claim()).record_id == record_id


async def test_reaching_a_milestone_brings_lane_count_and_guard(queue: Queue) -> None:
    """The next stage's lane, no failures and no seconds spent; at the end no lane and no more work."""
    record_id = await queue.record(failures=1, milestone_seconds=100.0)
    for milestone in NEXT:
        before = await queue.row(record_id)
        claim = await claim_of(queue, record_id)
        await queue.held_for(record_id, 5)
        assert await queue.settle(claim, Reached(FOUND[milestone]), {"seconds": 5}) == Settled()
        row = await queue.row(record_id)
        assert (row["milestone"], row["lane"]) == (NEXT[milestone], LANES[NEXT[milestone]])
        assert (row["failures"], row["milestone_seconds"], row["wake_at"]) == (0, 0.0, None)
        assert row["milestone_since"] > before["milestone_since"]
        last = (await queue.events(record_id))[-1]
        assert (last["kind"], last["milestone"], last["token"]) == ("reached", NEXT[milestone], claim.token)
        assert (last["settles"], last["by"], last["detail"]) == (True, "one", {"seconds": 5})
    assert await queue.ask() == NoWork()


async def test_a_failure_stays_counted_and_waits(queue: Queue) -> None:
    """Failing and running out of time leave the count as the claim raised it; the retry delay follows."""
    for kind, ending in (("failed", Failed("broken")), ("timed_out", TimedOut("slow"))):
        record_id = await queue.record()
        await queue.settle(await claim_of(queue, record_id), ending)
        assert (await queue.row(record_id))["wake_at"] is None
        claim = await claim_of(queue, record_id)
        assert await queue.settle(claim, ending, {"cause": ending.cause}, retry_delay=40) == Settled()
        row, event = await queue.row(record_id), (await queue.events(record_id))[-1]
        assert (row["failures"], row["milestone"]) == (2, "created")
        assert timedelta(seconds=39) < row["wake_at"] - event["at"] < timedelta(seconds=41)
        assert (event["kind"], event["detail"]) == (kind, {"cause": ending.cause})
        assert await queue.ask() == NoWork()
        await queue.come_due(record_id)
        assert (await queue.claim()).record_id == record_id


async def test_a_hopeless_record_is_stopped_by_its_holder(queue: Queue) -> None:
    """Flag, token and lease change together; the reason is on the record and in its history."""
    record_id = await queue.record()
    claim = await queue.claim()
    assert await queue.settle(claim, HOPELESS) == Settled(stopped=StopCode.NO_AUDIO)
    row, event = await queue.row(record_id), (await queue.events(record_id))[-1]
    assert (row["stop_code"], row["stop_reason"]) == ("no_audio", "no audio track in it")
    assert (row["stopped_by"], row["claim_token"], row["lease_until"]) == ("one", None, None)
    assert (row["milestone"], row["failures"], row["stopped_at"] is None) == ("created", 1, False)
    assert (event["kind"], event["token"]) == ("stopped", claim.token)
    assert event["detail"] == {"code": "no_audio", "reason": "no audio track in it"}
    assert await queue.ask() == NoWork()


async def test_a_hopeless_record_keeps_what_the_work_came_to(queue: Queue) -> None:
    """All in one step: its stop, its state, its segments; a lift goes on from there."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    found = advance(segment(0, "so far"))
    ending = Hopeless(StopCode.INCOMPLETE_RECOGNITION, "9 of 10 s of speech have no text", found)
    claim = await queue.claim()
    assert await queue.settle(claim, ending) == Settled(stopped=StopCode.INCOMPLETE_RECOGNITION)
    row = await queue.row(record_id)
    assert (row["stop_code"], row["operation"], row["milestone"]) == (
        "incomplete_recognition",
        {"slice": 1},
        "transcribe",
    )
    assert [each["text"] for each in await queue.segments(record_id)] == ["so far"]
    before = await queue.everything(record_id)
    assert await queue.settle(claim, ending) == Settled(stopped=StopCode.INCOMPLETE_RECOGNITION)
    assert await queue.everything(record_id) == before


async def test_a_recognition_that_begins_anew_drops_what_there_was(queue: Queue) -> None:
    """Also slices that it will not come to again."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    for found in (
        advance(segment(0, "old"), segment(0, "older", slice_=7)),
        evolve(advance(segment(0, "new")), anew=True),
    ):
        claim = await queue.claim()
        assert await queue.settle(claim, Deferred(0.0, found, "so far")) == Settled()
    assert [(each["slice"], each["text"]) for each in await queue.segments(record_id)] == [(0, "new")]


async def test_a_give_back_is_uncounted_and_clears_the_delay(queue: Queue) -> None:
    """The count is what it was before the claim and the record is ready at once, also past failures."""
    for failures in (0, 1, FAILURES_LIMIT):
        record_id = await queue.record(failures=failures)
        claim = await claim_of(queue, record_id)
        if failures == 1:
            assert await queue.claims.give_back(claim.token, "owed") is True
        else:
            assert await queue.settle(claim, GIVEN_BACK, {"why": "stop"}) == Settled()
        row = await queue.row(record_id)
        assert (row["failures"], row["wake_at"], row["claim_token"]) == (failures, None, None)
        assert (await queue.kinds(record_id)) == ["claimed", "given_back"]
        assert (await queue.events(record_id))[-1]["token"] == claim.token
        await claim_of(queue, record_id)
        await owner.delete(queue.database, record_id, None, "test")


async def test_a_give_back_never_takes_the_count_below_zero(queue: Queue) -> None:
    """One claim is given back once, however often it is said; a count of less than zero cannot be written."""
    record_id = await queue.record()
    claim = await queue.claim()
    assert [await queue.claims.give_back(claim.token, "twice") for _ in range(3)] == [True, False, False]
    assert await queue.settle(claim, GIVEN_BACK) == Settled(), "it was given back, by whom does not matter"
    assert (await queue.row(record_id))["failures"] == 0
    assert await queue.kinds(record_id) == ["claimed", "given_back"]
    claim = await queue.claim()
    await queue.change(record_id, failures=0)
    before = await queue.everything(record_id)
    with pytest.raises(DataRefused, match="failures"):
        await queue.claims.give_back(claim.token, "a count that is wrong is not put right in silence")
    assert await queue.everything(record_id) == before


async def test_give_backs_at_once_count_once(queue: Queue) -> None:
    """Ten give-backs of one claim at the same moment: one of them did it."""
    record_id = await queue.record(failures=2)
    claim = await queue.claim()
    said: list[bool] = []

    async def give_back() -> None:
        said.append(await queue.claims.give_back(claim.token, "at once"))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(give_back)
    assert sorted(said) == [False] * 9 + [True]
    assert (await queue.row(record_id))["failures"] == 2


async def test_a_stop_and_a_settle_at_once_agree(queue: Queue) -> None:
    """Whichever comes first holds: written and then stopped, or stopped and nothing written."""
    for n in range(20):
        record_id = await queue.record()
        claim = await claim_of(queue, record_id)
        ended: list[object] = []

        async def settle(claim: Claim = claim, ended: list[object] = ended) -> None:
            ended.append(await queue.settle(claim, Reached(conversion())))

        async def stop(record_id: UUID = record_id) -> None:
            assert await owner.stop(queue.database, record_id, None, "anna") is owner.Verdict.DONE

        async with trio.open_nursery() as nursery:
            for both in (settle, stop) if n % 2 else (stop, settle):
                nursery.start_soon(both)
        row = await queue.row(record_id)
        written = row["milestone"] == "converted"
        assert ended == [Settled() if written else ClaimLost()]
        assert (row["audio_path"] is not None, row["stop_code"]) == (written, "stopped_by_owner")
        assert await queue.kinds(record_id) == ["claimed", *(["reached"] if written else []), "stopped"]


async def test_one_claim_has_one_end(queue: Queue) -> None:
    """A second settle of a settled claim finds the first and writes nothing; the database forbids it."""
    for milestone in NEXT:
        for first in endings_at(milestone):
            record_id = await queue.record(milestone)
            claim = await claim_of(queue, record_id)
            told = await queue.settle(claim, first)
            before = await queue.everything(record_id)
            for again in (first, Failed("too late"), HOPELESS):
                assert await queue.settle(claim, again) == told, (first, again)
            assert await queue.everything(record_id) == before
            await owner.delete(queue.database, record_id, None, "test")


async def test_the_database_itself_forbids_a_second_end(queue: Queue) -> None:
    """Whoever writes past the protocol is refused: the token of an end is unique."""
    record_id = await queue.record()
    claim = await queue.claim()
    await queue.settle(claim, Failed("broken"))
    event: dict[str, object] = {"record_id": record_id, "kind": "failed", "milestone": "created"}
    with pytest.raises(DataRefused, match="events_settled"):
        await put(queue.database, "events", event | {"token": claim.token, "settles": True, "by": "two"})


async def test_the_seconds_of_a_milestone_grow_by_work_and_asked_delay(queue: Queue) -> None:
    """Each settle adds the time held and the delay the stage asked for; a retry delay adds nothing."""
    record_id = await queue.record(Milestone.TRANSCRIBE, created_at=NOON, milestone_since=NOON)
    expected = 0.0
    steps: list[tuple[Written, float]] = [
        (Deferred(100, advance()), 10 + 100),
        (Failed("broken"), 10),
        (TimedOut("slow"), 10),
        (GIVEN_BACK, 10),
        (Deferred(0, advance()), 10),
        (HOPELESS, 10),
    ]
    for ending, grows_by in steps:
        await queue.come_due(record_id)
        claim = await claim_of(queue, record_id)
        await queue.held_for(record_id, 10)
        assert isinstance(await queue.settle(claim, ending, retry_delay=500), Settled)
        expected += grows_by
        assert (await queue.row(record_id))["milestone_seconds"] == pytest.approx(expected, abs=2)


async def test_a_clock_that_was_set_back_takes_nothing_off_the_guard(queue: Queue) -> None:
    """A claim from "later" than now has been held for no time; no end of it is refused for that."""
    for ending in endings_at(Milestone.CREATED):
        record_id = await queue.record()
        claim = await claim_of(queue, record_id)
        await queue.held_for(record_id, -3600)
        assert isinstance(await queue.settle(claim, ending), Settled), ending
        asked = ending.delay if isinstance(ending, Deferred) else 0.0
        assert (await queue.row(record_id))["milestone_seconds"] == asked
        await owner.delete(queue.database, record_id, None, "test")


async def test_a_slice_is_replaced_whole(queue: Queue) -> None:
    """Recognised again, a slice has the new segments only; other slices and other records keep theirs."""
    other = await queue.record(Milestone.TRANSCRIBE, created_at=NOON)
    await queue.settle(await claim_of(queue, other), Deferred(3600, advance(segment(0, "other"))))
    record_id = await queue.record(Milestone.TRANSCRIBE)
    word = Word(start=0.5, end=0.75, text="раз", probability=0.25)
    first = Segment(slice=0, number=0, start=0.5, end=1.5, text="раз", words=(word,))
    for findings in (
        advance(first, segment(1, "два"), segment(2, "три")),
        advance(segment(0, "четыре", slice_=1)),
        advance(segment(0, "пять", slice_=1), segment(1, "шесть", slice_=1)),
        advance(segment(0, "семь", slice_=0)),
        advance(),
    ):
        await queue.settle(await claim_of(queue, record_id), Deferred(0, findings))
        if findings.segments == (first, segment(1, "два"), segment(2, "три")):
            [kept, *_] = await queue.segments(record_id)
            assert (kept["start_seconds"], kept["end_seconds"]) == (0.5, 1.5)
            assert kept["words"] == [{"start": 0.5, "end": 0.75, "text": "раз", "probability": 0.25}]
    assert [(row["slice"], row["number"], row["text"]) for row in await queue.segments(record_id)] == [
        (0, 0, "семь"),
        (1, 0, "пять"),
        (1, 1, "шесть"),
    ]
    assert [row["text"] for row in await queue.segments(other)] == ["other"]


async def test_the_text_is_joined_when_the_record_is_done(queue: Queue) -> None:
    """Slice by slice, number by number, with nothing for empty segments; and no text before the end."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    await queue.settle(await queue.claim(), Deferred(0, advance(segment(0, "десять", slice_=10))))
    await queue.settle(await queue.claim(), Deferred(0, advance(segment(1, "два", slice_=2))))
    assert (await queue.row(record_id))["recognised_text"] is None
    last = advance(segment(0, "один", slice_=2), segment(1, "", slice_=2), segment(10, "ещё", slice_=2))
    assert await queue.settle(await queue.claim(), Reached(last)) == Settled()
    assert (await queue.row(record_id))["recognised_text"] == "один ещё десять"


async def test_a_record_without_speech_is_done_with_an_empty_text(queue: Queue) -> None:
    """No segments make an empty text, which is not the same as none."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    assert await queue.settle(await queue.claim(), Reached(advance())) == Settled()
    assert (await queue.row(record_id))["recognised_text"] == ""


async def test_a_recognition_begun_anew_keeps_nothing_of_the_last_ones_progress(queue: Queue) -> None:
    """Its columns start over; the segments go when their slices are written again."""
    record_id = await queue.record(
        Milestone.CONVERTED, recognised_seconds=30.0, recognised_text="old", found_language="en"
    )
    assert await queue.settle(await queue.claim(), Reached(begun())) == Settled()
    row = await queue.row(record_id)
    assert (row["recogniser"], row["operation"]) == ("whisper", {"slice": 0})
    assert (row["recognised_seconds"], row["recognised_text"], row["found_language"]) == (0.0, None, None)


def odd_segment(**changes: Any) -> Segment:
    """A segment with something wrong about it."""
    return evolve(segment(0, "text"), **changes)


ODD_FINDINGS: dict[str, Findings] = {
    "NUL in the text": advance(odd_segment(text="a\0b")),
    "half a surrogate in the text": advance(odd_segment(text="a\ud800b")),
    "NUL in a word": advance(odd_segment(words=(Word(start=0, end=1, text="\0", probability=1),))),
    "no number": advance(odd_segment(words=(Word(start=0, end=1, text="", probability=float("nan")),))),
    "no time": advance(odd_segment(start=float("nan"))),
    "an end before its start": advance(odd_segment(start=9.0)),
    "a time before the file": advance(odd_segment(start=-1.0)),
    "a slice below zero": advance(odd_segment(slice=-1)),
    "a slice beyond any": advance(odd_segment(slice=2**40)),
    "a segment twice": advance(odd_segment(), odd_segment()),
    "NUL in the language": evolve(advance(), found_language="\0"),
    "half a surrogate in the language": evolve(advance(), found_language="\udfff"),
    "NUL in the operation": evolve(advance(), operation={"id": "\0"}),
    "no JSON in the operation": evolve(advance(), operation={"when": NOON}),
    "no number in the operation": evolve(advance(), operation={"at": float("nan")}),
    "half a surrogate in the operation": evolve(advance(), operation={"\ud800": 1}),
}


async def test_findings_that_cannot_be_stored_are_refused_whole(queue: Queue) -> None:
    """The database refuses the value, nothing at all is written, and the claim can still be failed."""
    for what, findings in ODD_FINDINGS.items():
        record_id = await queue.record(Milestone.TRANSCRIBE)
        claim = await claim_of(queue, record_id)
        before = await queue.everything(record_id)
        for ending in (Reached(findings), Deferred(0, findings)):
            with pytest.raises(DataRefused):
                await queue.settle(claim, ending)
            assert await queue.everything(record_id) == before, what
        assert await queue.settle(claim, Failed("refused"), {"cause": what}) == Settled(), what
        assert (await queue.row(record_id))["failures"] == 1
        await owner.delete(queue.database, record_id, None, "test")
    for milestone, odd in (
        (Milestone.CREATED, conversion("records/\0")),
        (Milestone.CREATED, evolve(conversion(), audio_warnings=("\ud800",))),
        (Milestone.CONVERTED, evolve(begun(), recogniser="\0")),
        (Milestone.CONVERTED, evolve(begun(), operation={"a": "\udc00"})),
    ):
        record_id = await queue.record(milestone)
        claim = await claim_of(queue, record_id)
        with pytest.raises(DataRefused):
            await queue.settle(claim, Reached(odd))
        assert await queue.settle(claim, Failed("refused")) == Settled()
        await owner.delete(queue.database, record_id, None, "test")


async def test_causes_that_cannot_be_stored_are_refused(queue: Queue) -> None:
    """Also the words about a failure are data: refused, with nothing written, for NUL and half surrogates."""
    record_id = await queue.record()
    claim = await queue.claim()
    before = await queue.everything(record_id)
    for odd in ("a\0b", "\ud800", "\udcff tail"):
        for ending, detail in (
            (Failed(odd), {"cause": odd}),
            (TimedOut(odd), {"cause": odd}),
            (Hopeless(StopCode.NOT_MEDIA, odd), {}),
            (Reached(conversion()), {"note": odd}),
            (GIVEN_BACK, {"why": odd}),
        ):
            with pytest.raises(DataRefused):
                await queue.settle(claim, ending, detail)
            assert await queue.everything(record_id) == before, (odd, ending)
        for limit in (0.0, 3600.0):
            with pytest.raises(DataRefused):
                await queue.settle(claim, Deferred(0, conversion(), odd), limit=limit)
        with pytest.raises(DataRefused):
            await queue.claims.give_back(claim.token, odd)
    assert await queue.everything(record_id) == before
    assert await queue.settle(claim, Failed("told well"), {"cause": "told well"}) == Settled()


async def test_a_refusal_does_not_repeat_the_row(queue: Queue) -> None:
    """The sentence goes into logs and causes: it says what was wrong and nothing of what was recognised."""
    record_id = await queue.record(Milestone.TRANSCRIBE, title="a secret title")
    claim = await claim_of(queue, record_id)
    with pytest.raises(DataRefused, match="segments_check") as refused:
        await queue.settle(claim, Reached(advance(odd_segment(text="a secret word", start=9.0))))
    assert "secret" not in str(refused.value)
    with pytest.raises(DataRefused, match="records_failures_check") as refused:
        await queue.change(record_id, failures=-1)
    assert "secret" not in str(refused.value)


def counted(events: list[dict[str, Any]]) -> int:
    """The failure count that a history adds up to: claims less give-backs since the last reset."""
    count, held = 0, False
    for event in events:
        match event["kind"]:
            case "claimed":
                count, held = count + 1, True
            case "given_back":
                count, held = count - 1, False
            case "reached" | "deferred" | "lifted":
                count, held = 0, False
            case "stopped":
                count, held = 0 if event["detail"].get("failures_reset") else count, False
            case "deleted":
                count, held = count - held, False
            case _:
                held = False
    return count


@frozen(kw_only=True)
class Course:
    """A course of events that chance decides, the same one for the same seed."""

    chance: random.Random
    queue: Queue
    ids: tuple[UUID, ...]
    claims: list[Claim] = field(factory=list)

    async def step(self) -> None:
        """Let something happen."""
        steps = (self.claim, self.settle, self.give_back, self.renew, self.person, self.time_passes)
        [step] = self.chance.choices(steps, (6, 6, 1, 1, 3, 3))
        await step()

    async def claim(self) -> None:
        """Claim with free lanes or without."""
        taken = await self.queue.ask(self.chance.choice((EVERY_LANE, EVERY_LANE, ())))
        if isinstance(taken, Claim):
            self.claims.append(taken)

    async def settle(self) -> None:
        """Write some end of some claim, which may be lost or settled."""
        if not self.claims:
            return
        claim = self.chance.choice(self.claims[-3:])
        milestone = Milestone((await self.queue.row(claim.record_id))["milestone"])
        findings = FOUND.get(milestone, advance())
        failed = (Failed("broken"), TimedOut("slow"), HOPELESS, GIVEN_BACK)
        deferred = Deferred(self.chance.choice((0, 60)), findings)
        [ending] = self.chance.choices((Reached(findings), deferred, *failed), (1, 6, 6, 2, 1, 2))
        limit, delay = self.chance.choice((0.0, 3600.0, 3600.0)), self.chance.choice((0.0, 0.0, 60.0))
        await self.queue.settle(claim, ending, limit=limit, retry_delay=delay)

    async def give_back(self) -> None:
        """Give some claim back by its token."""
        if self.claims:
            await self.queue.claims.give_back(self.chance.choice(self.claims[-3:]).token, "chance")

    async def renew(self) -> None:
        """Renew whatever was ever claimed."""
        await self.queue.claims.renew([claim.token for claim in self.claims])

    async def person(self) -> None:
        """Let a person stop or delete some record, or help them all back to work."""
        hinder = self.chance.choice((owner.stop, owner.delete, None))
        if hinder is not None:
            await hinder(self.queue.database, self.chance.choice(self.ids), None, "anna")
            return
        for record_id in self.ids:
            await owner.undelete(self.queue.database, record_id, None, "anna")
            await owner.lift(self.queue.database, record_id, None, "anna")

    async def time_passes(self) -> None:
        """Let some lease lapse or some delay end, with or without a wake."""
        await self.chance.choice((self.queue.lapse, self.queue.come_due))(self.chance.choice(self.ids))
        if self.chance.random() < 0.3:
            await self.queue.claims.wake()


@pytest.mark.parametrize("seed", range(4))
async def test_the_history_adds_up_to_the_count(queue: Queue, seed: int) -> None:
    """After any course of events count = claims - given back - resets, and no claim has two ends."""
    ids = tuple([await queue.record() for _ in range(4)])
    course = Course(chance=random.Random(seed), queue=queue, ids=ids)  # noqa: S311 - to be repeated, no secret
    for _ in range(150):
        await course.step()
    told = set()
    for record_id in ids:
        events, row = await queue.events(record_id), await queue.row(record_id)
        assert row["failures"] == counted(events), (seed, [event["kind"] for event in events])
        settled = [event["token"] for event in events if event["settles"]]
        assert len(set(settled)) == len(settled)
        assert set(settled) <= {event["token"] for event in events if event["kind"] == "claimed"}
        told |= {event["kind"] for event in events}
    assert {"claimed", "failed", "deferred", "stopped", "lifted", "deleted"} <= told, (
        "the course was a dull one"
    )

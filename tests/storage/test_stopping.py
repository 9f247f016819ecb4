"""A person stops, lifts, deletes and undeletes at any time: fenced at once, freeing nobody else's claim."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
import trio

from storage import owner
from storage.claim import Claim, ClaimLost, NotFound, NoWork
from storage.claims import Settled
from storage.database import Database
from storage.ending import Failed, Hopeless, Reached
from storage.owner import Verdict
from storage.record import Milestone, StopCode
from tests.builders import NOON, Queue, advance, ask, conversion, put_account

Verb = Callable[[Database, UUID, UUID | None, str], Awaitable[Verdict | NotFound]]

VERBS: tuple[Verb, ...] = (owner.stop, owner.lift, owner.delete, owner.undelete)


async def claim_of(queue: Queue, record_id: UUID) -> Claim:
    """Claim, and see that it is this record."""
    claim = await queue.claim()
    assert claim.record_id == record_id
    return claim


async def do(queue: Queue, verb: Verb, record_id: UUID) -> Verdict | NotFound:
    """Do something as the record's owner."""
    return await verb(queue.database, record_id, queue.owner, "anna")


async def test_s_p9_a_second_lift_frees_nobodys_claim(queue: Queue) -> None:
    """Lifted, claimed by another, lifted again: the claim is whole, its result written, one event told."""
    record_id = await queue.record()
    await claim_of(queue, record_id)
    assert await do(queue, owner.stop, record_id) is Verdict.DONE
    assert await owner.lift(queue.database, record_id, queue.owner, "boris") is Verdict.DONE
    second = await queue.elsewhere().claim()
    before = await queue.everything(record_id)
    assert await do(queue, owner.lift, record_id) is Verdict.NOT_STOPPED
    assert await queue.everything(record_id) == before
    assert await queue.settle(second, Reached(conversion())) == Settled()
    events = [event for event in await queue.events(record_id) if event["kind"] == "lifted"]
    assert [event["by"] for event in events] == ["boris"]


async def test_a_stop_fences_a_running_attempt_at_once(queue: Queue) -> None:
    """Flag, token and lease change together; no claim gets the record, and its count stays until a lift."""
    record_id = await queue.record(failures=1)
    claim = await claim_of(queue, record_id)
    assert await do(queue, owner.stop, record_id) is Verdict.DONE
    row = await queue.row(record_id)
    assert (row["stop_code"], row["stop_reason"]) == ("stopped_by_owner", "stopped by anna")
    assert (row["stopped_by"], row["failures"], row["milestone"]) == ("anna", 2, "created")
    held = ("claim_token", "claimed_by", "claimed_at", "lease_seconds", "lease_until", "wake_at")
    assert [row[name] for name in held] == [None] * len(held)
    assert await queue.ask() == NoWork()
    assert await queue.settle(claim, Reached(conversion())) == ClaimLost()
    event = (await queue.events(record_id))[-1]
    assert (event["kind"], event["by"], event["token"]) == ("stopped", "anna", None)
    assert event["detail"] == {"code": "stopped_by_owner", "reason": "stopped by anna"}


async def test_a_lift_starts_failures_and_guard_anew(queue: Queue) -> None:
    """Whatever had stopped it, the record is ready at its milestone, with nothing counted."""
    for milestone in (Milestone.CREATED, Milestone.TRANSCRIBE):
        record_id = await queue.record(
            milestone, failures=3, milestone_seconds=5000.0, milestone_since=NOON, wake_at=NOON
        )
        claim = await claim_of(queue, record_id)
        await queue.settle(claim, Hopeless(StopCode.ATTEMPTS_EXHAUSTED, "three times"))
        assert await do(queue, owner.lift, record_id) is Verdict.DONE
        row, event = await queue.row(record_id), (await queue.events(record_id))[-1]
        stop = [row[name] for name in ("stop_code", "stop_reason", "stopped_at", "stopped_by")]
        assert (stop, row["failures"], row["milestone_seconds"]) == ([None] * 4, 0, 0.0)
        assert (row["milestone"], row["wake_at"]) == (milestone, None)
        assert timedelta() <= event["at"] - row["milestone_since"] < timedelta(seconds=5)
        assert (event["kind"], event["by"], event["milestone"]) == ("lifted", "anna", milestone)
        await claim_of(queue, record_id)
        assert (await queue.row(record_id))["failures"] == 1


async def test_a_lift_lets_the_record_fail_as_often_as_before(queue: Queue) -> None:
    """After the lift the stage may run as many times again before the record is exhausted."""
    record_id = await queue.record(failures=3)
    assert await do(queue, owner.stop, record_id) is Verdict.DONE
    assert await do(queue, owner.lift, record_id) is Verdict.DONE
    for _ in range(3):
        assert await queue.ask([]) == NoWork()
        await queue.settle(await claim_of(queue, record_id), Failed("again"))
    assert (await queue.claim([])).record_id == record_id


async def test_a_deletion_takes_the_running_claim_off_the_count(queue: Queue) -> None:
    """What was being tried says nothing of the record; an attempt that had ended stays counted."""
    held, free = await queue.records(2)
    await queue.settle(await claim_of(queue, held), Failed("once"))
    claim = await claim_of(queue, held)
    await queue.settle(await claim_of(queue, free), Failed("once"))
    for record_id in (held, free):
        assert await do(queue, owner.delete, record_id) is Verdict.DONE
        row = await queue.row(record_id)
        assert (row["failures"], row["claim_token"], row["lease_until"]) == (1, None, None)
        assert (row["deleted_at"] is not None, row["wake_at"]) == (True, None)
    assert await queue.ask() == NoWork()
    assert await queue.claims.read(held) == NotFound(held)
    assert await queue.settle(claim, Reached(conversion())) == ClaimLost()
    assert (await queue.events(held))[-1]["kind"] == "deleted"


async def test_an_undeletion_lets_the_record_go_on_where_it_was(queue: Queue) -> None:
    """Its milestone, its count and what was found are kept; it is ready at once."""
    record_id = await queue.record()
    await queue.settle(await claim_of(queue, record_id), Reached(conversion()))
    await queue.settle(await claim_of(queue, record_id), Failed("once"), retry_delay=600)
    before = await queue.row(record_id)
    assert await do(queue, owner.delete, record_id) is Verdict.DONE
    assert await do(queue, owner.undelete, record_id) is Verdict.DONE
    assert await queue.row(record_id) == before | {"wake_at": None}
    await claim_of(queue, record_id)
    assert (await queue.row(record_id))["failures"] == 2
    assert (await queue.kinds(record_id))[-3:] == ["deleted", "undeleted", "claimed"]


async def test_an_undeletion_lifts_no_stop(queue: Queue) -> None:
    """Deleted while stopped, a record comes back stopped, and done while done."""
    stopped, done = await queue.record(), await queue.record(Milestone.DONE)
    assert await do(queue, owner.stop, stopped) is Verdict.DONE
    for record_id in (stopped, done):
        before = await queue.row(record_id)
        assert await do(queue, owner.delete, record_id) is Verdict.DONE
        assert await do(queue, owner.undelete, record_id) is Verdict.DONE
        assert await queue.row(record_id) == before
    assert await queue.ask() == NoWork()


async def prepared(queue: Queue, state: str) -> UUID:
    """Make a record in one of the states a verb may meet."""
    record_id = await queue.record(Milestone.DONE if state == "done" else Milestone.CREATED)
    match state:
        case "held":
            await claim_of(queue, record_id)
        case "stopped":
            await do(queue, owner.stop, record_id)
        case "deleted":
            await do(queue, owner.delete, record_id)
        case "stopped and deleted":
            await do(queue, owner.stop, record_id)
            await do(queue, owner.delete, record_id)
        case _:
            pass
    return record_id


VERDICTS: dict[str, tuple[Verdict | None, ...]] = {
    # what stop, lift, delete and undelete answer; None is "not found"
    "waiting": (Verdict.DONE, Verdict.NOT_STOPPED, Verdict.DONE, Verdict.NOT_DELETED),
    "held": (Verdict.DONE, Verdict.NOT_STOPPED, Verdict.DONE, Verdict.NOT_DELETED),
    "stopped": (Verdict.ALREADY_STOPPED, Verdict.DONE, Verdict.DONE, Verdict.NOT_DELETED),
    "done": (Verdict.PAST_STOPPING, Verdict.NOT_STOPPED, Verdict.DONE, Verdict.NOT_DELETED),
    "deleted": (None, None, None, Verdict.DONE),
    "stopped and deleted": (None, None, None, Verdict.DONE),
}


@pytest.mark.parametrize("state", VERDICTS)
async def test_what_each_verb_says_of_each_state(queue: Queue, state: str) -> None:
    """Only DONE changes something, and then leaves one event that names who did it."""
    for verb, expected in zip(VERBS, VERDICTS[state], strict=True):
        record_id = await prepared(queue, state)
        before, past = await queue.everything(record_id), len(await queue.events(record_id))
        assert await do(queue, verb, record_id) == (expected or NotFound(record_id)), verb.__name__
        changed = await queue.everything(record_id) != before
        assert changed is (expected is Verdict.DONE)
        assert [event["by"] for event in (await queue.events(record_id))[past:]] == ["anna"] * changed
        await ask(queue.database, "DELETE FROM records WHERE id = %s", [record_id])


@pytest.mark.parametrize("state", VERDICTS)
async def test_someone_elses_record_is_not_found(queue: Queue, state: str) -> None:
    """Another account's verbs meet a record as if there were none, and change nothing."""
    stranger = await put_account(queue.database)
    record_id = await prepared(queue, state)
    before = await queue.everything(record_id)
    for verb in VERBS:
        assert await verb(queue.database, record_id, stranger, "eve") == NotFound(record_id)
        assert await queue.everything(record_id) == before


async def test_the_service_owner_reaches_every_record(queue: Queue) -> None:
    """Without an owner named each verb has its effect; an unknown record is not found by anybody."""
    record_id = await queue.record()
    for verb in VERBS:
        assert await verb(queue.database, record_id, None, "root") is Verdict.DONE
    assert await queue.kinds(record_id) == ["stopped", "lifted", "deleted", "undeleted"]
    unknown = uuid4()
    for verb in VERBS:
        assert await verb(queue.database, unknown, None, "root") == NotFound(unknown)


async def test_two_lifts_at_once_are_one(queue: Queue) -> None:
    """Of ten lifts at the same moment one lifts; there is one event."""
    record_id = await queue.record()
    await do(queue, owner.stop, record_id)
    answers: list[Verdict | NotFound] = []

    async def lift() -> None:
        answers.append(await do(queue, owner.lift, record_id))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(lift)
    assert sorted(map(str, answers)) == sorted(map(str, [Verdict.DONE] + [Verdict.NOT_STOPPED] * 9))
    assert await queue.kinds(record_id) == ["stopped", "lifted"]


async def test_what_makes_a_record_ready_rings_the_bell_of_its_lane(queue: Queue) -> None:
    """Lifting, undeleting, giving back and reaching a milestone ring once, with the lane that has work."""
    created, going_on = await queue.record(), await queue.record(Milestone.TRANSCRIBE)
    ringing, bell = trio.open_memory_channel[str](100)

    async def hear(task_status: trio.TaskStatus[None]) -> None:
        def note(told: str) -> None:
            ringing.send_nowait(told.rpartition(" ")[0] or told)  # what follows is when it was created

        await queue.database.hear("rubezh_ready", note, task_status.started)

    async def rings(*lanes: str) -> None:
        await ask(queue.database, "NOTIFY rubezh_ready, 'nothing_more'")
        with trio.fail_after(5):
            assert [await bell.receive() for _ in (*lanes, "nothing_more")] == [*lanes, "nothing_more"]

    async with trio.open_nursery() as nursery:
        await nursery.start(hear)
        for record_id in (created, going_on):
            for verb in VERBS:
                assert await do(queue, verb, record_id) is Verdict.DONE
        await rings("convert", "convert", "whisper", "whisper")
        claim, other = await queue.claim(), await queue.claim()
        assert len(await queue.claims.renew([claim.token, other.token])) == 2
        await rings()
        await queue.claims.give_back(claim.token, "stop")
        await rings("convert")
        await queue.settle(await claim_of(queue, created), Reached(conversion()))
        await rings("whisper")
        await queue.settle(await claim_of(queue, created), Failed("broken"))
        await queue.settle(other, Reached(advance()))
        await rings()
        nursery.cancel_scope.cancel()

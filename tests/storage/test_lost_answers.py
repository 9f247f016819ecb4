"""When an answer is lost the work is neither lost nor doubled: the token tells, over real cut connections."""

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import psycopg
import pytest
import trio
from attrs import evolve

from storage.claim import Claim, ClaimLost, NoWork
from storage.claims import Settled
from storage.database import open_database
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.errors import DatabaseUnavailable
from storage.floors import BOTTOM
from storage.record import Milestone, StopCode
from storage.sql import query
from tests.builders import EVERY_LANE, LEASES, Queue, Written, advance, ask, segment
from tests.wire import Wire, open_wire

ENDINGS: tuple[tuple[Written, str, Settled], ...] = (
    (Reached(advance(segment(0, "one"), segment(1, "two"))), "reached", Settled()),
    (Deferred(0, advance(segment(0, "one"))), "deferred", Settled()),
    (Deferred(7200, advance(segment(0, "one"))), "stopped", Settled(stopped=StopCode.OVERDUE)),
    (Hopeless(StopCode.SILENT, "nothing said"), "stopped", Settled(stopped=StopCode.SILENT)),
    (Failed("broken"), "failed", Settled()),
    (TimedOut("slow"), "timed_out", Settled()),
    (GivenBack("stop"), "given_back", Settled()),
)


@pytest.fixture
async def wire(dsn: str) -> AsyncIterator[Wire]:
    """A wire to this test's database."""
    async with open_wire(dsn) as laid:
        yield laid


@pytest.fixture
async def far(queue: Queue, wire: Wire) -> AsyncIterator[Queue]:
    """The queue as a process sees it whose every word goes over the wire."""
    async with open_database(
        wire.dsn, pool_size=2, call_seconds=10, statement_seconds=5, listen=True
    ) as database:
        yield evolve(queue, database=database, claims=evolve(queue.claims, database=database))


async def test_s_s1_a_claim_whose_answer_was_lost_is_given_back_by_its_token(
    queue: Queue, far: Queue, wire: Wire
) -> None:
    """The claim was made and nobody heard; its token gives it back, uncounted, and the next claim gets it."""
    record_id, token = await queue.record(failures=1), uuid4()
    wire.cut_after(b"SKIP LOCKED")
    with pytest.raises(DatabaseUnavailable):
        await far.claims.claim(token, EVERY_LANE)
    row = await queue.row(record_id)
    assert (row["claim_token"], row["failures"]) == (token, 2)
    assert await queue.ask() == NoWork()
    assert await far.claims.give_back(token, "the answer to the claim was lost") is True
    row = await queue.row(record_id)
    assert (row["claim_token"], row["failures"], row["wake_at"]) == (None, 1, None)
    assert (await queue.claim()).record_id == record_id
    assert await queue.kinds(record_id) == ["claimed", "given_back", "claimed"]


async def test_a_claim_that_never_arrived_has_nothing_to_give_back(
    queue: Queue, far: Queue, wire: Wire
) -> None:
    """Cut before the words arrived: no claim, no count, and a give-back that finds nothing."""
    record_id, token = await queue.record(), uuid4()
    before = await queue.everything(record_id)
    wire.cut_before(b"SKIP LOCKED")
    with pytest.raises(DatabaseUnavailable):
        await far.claims.claim(token, EVERY_LANE)
    assert await far.claims.give_back(token, "the answer to the claim was lost") is False
    assert await queue.everything(record_id) == before
    assert (await far.claim()).record_id == record_id


async def test_s_s1_a_claim_that_is_made_only_later_is_given_back_later(queue: Queue, dsn: str) -> None:
    """While the claim is on its way nothing carries its token; said again it gives the claim back."""
    record_id, token = await queue.record(), uuid4()
    asked = {"token": token, "claimed_by": "slow", "lanes": ["convert"], "stores": [queue.store]}
    asked |= {
        "floors": [BOTTOM],
        "wake_from": BOTTOM,
        "sign": None,
        "failures_limit": 3,
        "milestones": list(LEASES),
        "leases": list(LEASES.values()),
    }
    with psycopg.connect(dsn) as slow:
        assert slow.execute(query("claim"), asked).fetchone() == (record_id, token)
        assert await queue.claims.give_back(token, "lost") is False
        slow.commit()
    assert await queue.claims.give_back(token, "lost") is True
    assert (await queue.row(record_id))["failures"] == 0
    assert await queue.claims.give_back(token, "lost") is False
    assert await queue.kinds(record_id) == ["claimed", "given_back"]


async def test_a_give_back_whose_answer_was_lost_is_done_once(queue: Queue, far: Queue, wire: Wire) -> None:
    """It may be said again: the second time finds nothing to do, also when another has the record now."""
    record_id = await queue.record()
    claim = await far.claim()
    wire.cut_after(b"given_back")
    with pytest.raises(DatabaseUnavailable):
        await far.claims.give_back(claim.token, "stop")
    other = await queue.claim()
    assert await far.claims.give_back(claim.token, "stop") is False
    row = await queue.row(record_id)
    assert (row["claim_token"], row["failures"]) == (other.token, 1)


async def held(queue: Queue) -> tuple[UUID, Claim]:
    """Claim a record whose recognition goes on."""
    record_id = await queue.record(Milestone.TRANSCRIBE, failures=1)
    claim = await queue.claim()
    assert claim.record_id == record_id
    return record_id, claim


async def done_with(queue: Queue, record_id: UUID) -> None:
    """Take a record out of the way."""
    await ask(queue.database, "DELETE FROM records WHERE id = %s", [record_id])


async def test_s_s2_a_settle_whose_answer_was_lost_is_found_by_its_token(
    queue: Queue, far: Queue, wire: Wire
) -> None:
    """Committed and not heard: said again it says how it ended, and nothing is written a second time."""
    for ending, kind, expected in ENDINGS:
        record_id, claim = await held(queue)
        wire.cut_after(b"COMMIT")
        with pytest.raises(DatabaseUnavailable):
            await far.settle(claim, ending)
        before = await queue.everything(record_id)
        assert await queue.kinds(record_id) == ["claimed", kind]
        assert await far.settle(claim, ending) == expected, ending
        assert await queue.everything(record_id) == before
        await done_with(queue, record_id)


async def test_s_s2_a_settle_that_was_not_committed_is_written_when_said_again(
    queue: Queue, far: Queue, wire: Wire
) -> None:
    """Cut before the commit: nothing of it is there, the token is current, and the second time writes it."""
    for ending, kind, expected in ENDINGS:
        record_id, claim = await held(queue)
        before = await queue.everything(record_id)
        wire.cut_before(b"COMMIT")
        with pytest.raises(DatabaseUnavailable):
            await far.settle(claim, ending)
        assert await queue.everything(record_id) == before, ending
        assert await far.settle(claim, ending) == expected, ending
        assert await queue.kinds(record_id) == ["claimed", kind]
        await done_with(queue, record_id)


async def test_a_settle_that_was_not_committed_may_have_lost_its_claim_meanwhile(
    queue: Queue, far: Queue, wire: Wire
) -> None:
    """Neither the event nor the token: said again it is a lost claim, and the second holder's work stands."""
    for ending, _, _ in ENDINGS:
        record_id, claim = await held(queue)
        wire.cut_before(b"COMMIT")
        with pytest.raises(DatabaseUnavailable):
            await far.settle(claim, ending)
        await queue.lapse(record_id)
        assert (await queue.claim()).record_id == record_id
        before = await queue.everything(record_id)
        assert await far.settle(claim, ending) == ClaimLost(), ending
        assert await queue.everything(record_id) == before
        await done_with(queue, record_id)


async def test_s_s2_an_end_is_found_also_after_the_record_went_on(
    queue: Queue, far: Queue, wire: Wire
) -> None:
    """Settled without hearing it, claimed and settled by another since: the first still ended as settled."""
    record_id, claim = await held(queue)
    first = Deferred(0, advance(segment(0, "first")))
    wire.cut_after(b"COMMIT")
    with pytest.raises(DatabaseUnavailable):
        await far.settle(claim, first)
    last = Reached(advance(segment(0, "second", slice_=1)))
    assert await queue.settle(await queue.claim(), last) == Settled()
    before = await queue.everything(record_id)
    assert await far.settle(claim, first) == Settled()
    assert await queue.everything(record_id) == before
    assert (await queue.row(record_id))["recognised_text"] == "first second"


async def test_a_settle_said_again_while_the_first_is_still_under_way(queue: Queue, dsn: str) -> None:
    """The second waits for the first's row and then finds its event: never two ends, never a lost claim."""
    record_id, claim = await held(queue)
    with psycopg.connect(dsn) as first:
        asked = {"id": record_id, "token": claim.token, "by": "one", "kind": "failed", "delay": 0.0}
        first.execute(query("end_failed"), asked | {"detail": psycopg.types.json.Jsonb({})})
        answers: list[Settled | ClaimLost] = []

        async def again() -> None:
            answers.append(await queue.settle(claim, Failed("broken")))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(again)
            await waits_for_a_lock(queue)
            assert answers == []
            first.commit()
    assert answers == [Settled()]
    assert await queue.kinds(record_id) == ["claimed", "failed"]


async def waits_for_a_lock(queue: Queue) -> int:
    """Wait until a session of this database waits for a lock; return its process id."""
    statement = """SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'"""
    with trio.fail_after(5):
        while True:
            if rows := await ask(queue.database, statement):
                return int(rows[0]["pid"])
            await trio.sleep(0.01)


async def test_a_session_ended_in_mid_settle_leaves_nothing_of_it(queue: Queue, dsn: str) -> None:
    """The server ends the session between two statements: unknown at first, and written when said again."""
    record_id, claim = await held(queue)
    ending = Reached(advance(segment(0, "whole")))
    with psycopg.connect(dsn) as editing:
        editing.execute("UPDATE records SET title = 'edited' WHERE id = %s", [record_id])
        async with trio.open_nursery() as nursery:

            async def settle() -> None:
                with pytest.raises(DatabaseUnavailable):
                    await queue.settle(claim, ending)

            nursery.start_soon(settle)
            pid = await waits_for_a_lock(queue)
            await ask(queue.database, "SELECT pg_terminate_backend(%s)", [pid])
        editing.commit()
    assert await queue.kinds(record_id) == ["claimed"]
    assert await queue.settle(claim, ending) == Settled()
    assert ((await queue.row(record_id))["title"], await queue.kinds(record_id)) == (
        "edited",
        ["claimed", "reached"],
    )

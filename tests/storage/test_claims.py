"""A claim takes one ready record, in a determined order, and nobody else gets it."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID, uuid4

import attrs
import psycopg
import pytest
import trio

from storage import owner
from storage.claim import Claim, ClaimLost, NotFound, NoWork
from storage.claims import LastFailure, Settled
from storage.database import Connection, open_database
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.floors import BOTTOM
from storage.record import Milestone, Record, StopCode
from storage.sql import query
from tests.builders import (
    EVERY_LANE,
    FAILURES_LIMIT,
    LEASES,
    NOON,
    Queue,
    a_queue,
    advance,
    claims_of,
    conversion,
    put_account,
    put_store,
)


async def at_once(queue: Queue, count: int) -> list[Claim | NoWork]:
    """Send `count` claims at the same moment; return their answers."""
    answers: list[Claim | NoWork] = []

    async def claim() -> None:
        answers.append(await queue.ask())

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(claim)
    return answers


async def soon(queue: Queue) -> Claim:
    """Ask until there is work."""
    while True:
        claim = await queue.ask()
        if isinstance(claim, Claim):
            return claim
        await trio.sleep(0.02)


async def claim_all(queue: Queue, lanes: tuple[str, ...] = EVERY_LANE) -> list[UUID]:
    """Claim until there is no work; return the ids in the order they came."""
    taken = []
    while isinstance(claim := await queue.ask(lanes), Claim):
        taken.append(claim.record_id)
    return taken


async def test_s_b1_three_claims_at_once_and_one_ready_record(queue: Queue) -> None:
    """Exactly one claim gets the record, the two others get "no work"; so every time."""
    for _ in range(10):
        record_id = await queue.record()
        answers = await at_once(queue, 3)
        assert [claim.record_id for claim in answers if isinstance(claim, Claim)] == [record_id]
        assert answers.count(NoWork()) == 2
        assert (await queue.row(record_id))["failures"] == 1


@pytest.mark.parametrize("claimers", [3, 20])
async def test_claimers_never_share_and_never_starve(loop: None, dsn: str, claimers: int) -> None:
    """With as many ready records as claims at once, each claim gets one of its own, round after round."""
    async with open_database(
        dsn, pool_size=claimers, call_seconds=30, statement_seconds=10, listen=True
    ) as database:
        queue = await a_queue(database)
        for _ in range(5):
            ready = await queue.records(claimers)
            answers = await at_once(queue, claimers)
            assert sorted(claim.record_id for claim in answers if isinstance(claim, Claim)) == sorted(ready)


@pytest.mark.parametrize("claimers", [3, 20])
async def test_claimers_in_a_race_take_each_record_once(loop: None, dsn: str, claimers: int) -> None:
    """Claimers that claim and settle as fast as they can leave no record out and take none twice."""
    async with open_database(
        dsn, pool_size=claimers, call_seconds=30, statement_seconds=10, listen=True
    ) as database:
        queue = await a_queue(database)
        ready = await queue.records(60)
        taken: list[UUID] = []

        async def race() -> None:
            while len(taken) < len(ready):
                claim = await queue.ask(["convert"])
                if isinstance(claim, Claim):
                    taken.append(claim.record_id)
                    assert await queue.settle(claim, Reached(conversion())) == Settled()

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for _ in range(claimers):
                    nursery.start_soon(race)
        assert sorted(taken) == sorted(ready)


async def test_s_b2_a_held_record_is_not_given_again(queue: Queue) -> None:
    """While the lease runs the record is nobody else's, neither by itself nor after a wake."""
    await queue.record()
    await queue.claim()
    assert await queue.ask() == NoWork()
    await queue.claims.wake()
    assert await queue.ask() == NoWork()


async def test_s_b3_a_claim_returns_id_and_token_only(queue: Queue) -> None:
    """Neither the claim nor its statement has a column of the record; a read of its own has them."""
    record_id, token = await queue.record(title="A talk"), uuid4()
    claim = await queue.claims.claim(token, EVERY_LANE)
    assert claim == Claim(record_id=record_id, token=token)
    assert [field.name for field in attrs.fields(Claim)] == ["record_id", "token"]

    async def columns_of_the_statement(connection: Connection) -> list[str]:
        asked = {
            "token": uuid4(),
            "claimed_by": "one",
            "lanes": list(EVERY_LANE),
            "floors": [BOTTOM for _ in EVERY_LANE],
            "wake_from": BOTTOM,
            "sign": None,
            "stores": [queue.store],
            "failures_limit": 3,
            "milestones": list(LEASES),
            "leases": list(LEASES.values()),
        }
        cursor = await connection.execute(query("claim"), asked)
        return [column.name for column in cursor.description or ()]

    assert await queue.database.transact(columns_of_the_statement) == ["id", "claim_token"]
    record = await queue.claims.read(record_id)
    assert isinstance(record, Record)
    assert (record.title, record.milestone, record.failures) == ("A talk", Milestone.CREATED, 1)
    assert record.claim_token == token


async def test_s_b4_a_claim_after_a_lift_has_another_token(queue: Queue) -> None:
    """Stopped, lifted and claimed by another process: the token is another one."""
    record_id = await queue.record()
    first = await queue.claim()
    assert await owner.stop(queue.database, record_id, queue.owner, "anna") is owner.Verdict.DONE
    assert await owner.lift(queue.database, record_id, queue.owner, "anna") is owner.Verdict.DONE
    second = await queue.elsewhere().claim()
    assert second.record_id == first.record_id == record_id
    assert second.token != first.token
    assert (await queue.row(record_id))["claim_token"] == second.token


async def test_s_e1_two_owners_in_the_order_of_creation(queue: Queue) -> None:
    """One claimer takes the records of both owners, whoever owns them, the oldest first."""
    other = await put_account(queue.database)
    made = [
        await queue.record(owner_id=owner_id, created_at=NOON + timedelta(seconds=n))
        for n, owner_id in enumerate((queue.owner, other, other, queue.owner))
    ]
    assert await claim_all(queue) == made


async def test_s_s7_a_record_is_claimed_only_where_its_store_is_mounted(queue: Queue) -> None:
    """A process without the store has no work, whatever the record's count; one with it gets the record."""
    other = await put_store(queue.database)
    fresh = await queue.record(store_id=other)
    exhausted = await queue.record(store_id=other, failures=FAILURES_LIMIT)
    assert await queue.ask() == NoWork()
    assert await claim_all(queue.elsewhere(other, queue.store)) == [fresh, exhausted]


async def test_s_s12_equal_creation_times_are_ordered_by_the_key(queue: Queue) -> None:
    """Records of one moment come in the order of their keys, in whatever order they were written."""
    ids = [uuid4() for _ in range(12)]
    for record_id in ids:
        await queue.record(id=record_id, created_at=NOON)
    assert await claim_all(queue) == sorted(ids)


async def test_the_order_is_one_across_lanes_stores_and_reasons_to_be_ready(queue: Queue) -> None:
    """Waiting, due, lapsed and exhausted records of two lanes and two stores form one line."""
    other = await put_store(queue.database)
    past = NOON - timedelta(days=1)
    kinds: list[tuple[Milestone, dict[str, object]]] = [
        (Milestone.TRANSCRIBE, {}),
        (Milestone.CREATED, {"wake_at": past}),
        (Milestone.CREATED, {"store_id": other}),
        (Milestone.CONVERTED, {"failures": FAILURES_LIMIT}),
        (Milestone.CREATED, {"failures": FAILURES_LIMIT, "store_id": other, "wake_at": past}),
        (Milestone.TRANSCRIBE, {"wake_at": past, "store_id": other}),
        (Milestone.CREATED, {}),
    ]
    made = [
        await queue.record(milestone, created_at=NOON + timedelta(seconds=n // 2), id=UUID(int=n + 1), **more)
        for n, (milestone, more) in enumerate(kinds)
    ]
    assert await claim_all(queue.elsewhere(queue.store, other)) == made


async def test_a_long_line_hides_nothing_of_another(queue: Queue) -> None:
    """Whatever stands before them elsewhere, the first of each lane, store and reason are found."""
    past, other = NOON - timedelta(days=1), await put_store(queue.database)
    for n in range(40):
        at = NOON + timedelta(seconds=n)
        await queue.record(created_at=at)
        await queue.record(created_at=at, wake_at=past)
        await queue.record(created_at=at, failures=FAILURES_LIMIT, store_id=other)
        await queue.record(created_at=at, failures=FAILURES_LIMIT - 1, wake_at=past)
    later = NOON + timedelta(days=1)
    expected = {
        await queue.record(Milestone.TRANSCRIBE, created_at=later),
        await queue.record(Milestone.TRANSCRIBE, created_at=later, wake_at=past),
        await queue.record(created_at=later, failures=FAILURES_LIMIT),
        await queue.record(created_at=later, failures=FAILURES_LIMIT, wake_at=past),
    }
    assert set(await claim_all(queue, ("whisper",))) == expected


async def test_a_long_line_is_taken_in_its_order(queue: Queue) -> None:
    """More records than one claim looks at come in their order, in whatever order they were written."""
    moments = [NOON + timedelta(seconds=7 * n % 50) for n in range(50)]
    made = {moment: await queue.record(created_at=moment) for moment in moments}
    assert await claim_all(queue) == [made[moment] for moment in sorted(made)]


async def test_a_record_locked_by_an_edit_is_skipped_and_found_later(queue: Queue, dsn: str) -> None:
    """An owner's edit under way holds up nobody: the next record goes, the edited one at a later claim."""
    first, second = await queue.records(2)
    with psycopg.connect(dsn) as editing:
        editing.execute("UPDATE records SET title = 'edited' WHERE id = %s", [first])
        with trio.fail_after(5):
            assert (await queue.claim()).record_id == second
            assert await queue.ask() == NoWork()
        editing.commit()
    assert (await queue.claim()).record_id == first
    assert (await queue.row(first))["title"] == "edited"


async def test_a_claim_locks_its_record_alone(queue: Queue, dsn: str) -> None:
    """Of all the candidates a claim under way holds one row: every other is free for everybody."""
    ready = await queue.records(5)
    ready += [await queue.record(failures=FAILURES_LIMIT), await queue.record(wake_at=NOON)]
    with psycopg.connect(dsn) as claiming, psycopg.connect(dsn, autocommit=True) as looking:
        asked = {"token": uuid4(), "claimed_by": "raw", "lanes": ["convert"], "stores": [queue.store]}
        asked |= {
            "floors": [BOTTOM],
            "wake_from": BOTTOM,
            "sign": None,
            "failures_limit": 3,
            "milestones": list(LEASES),
            "leases": list(LEASES.values()),
        }
        taken = claiming.execute(query("claim"), asked).fetchone()
        assert taken is not None
        free = looking.execute("SELECT id FROM records FOR UPDATE SKIP LOCKED").fetchall()
        claiming.rollback()
    assert taken[0] == ready[0]
    assert {row[0] for row in free} == set(ready) - {taken[0]}


async def test_a_lapsed_lease_is_issued_again_under_another_token(queue: Queue) -> None:
    """Nobody needs to say that the holder is gone; the first attempt stays counted."""
    record_id = await queue.record()
    first = await queue.claim()
    await queue.lapse(record_id)
    second = await queue.claim()
    assert (second.record_id, (await queue.row(record_id))["failures"]) == (record_id, 2)
    assert second.token != first.token
    assert await queue.settle(first, Reached(conversion())) == ClaimLost()
    assert await queue.settle(second, Reached(conversion())) == Settled()


async def test_a_short_lease_lapses_by_the_clock_of_the_database(queue: Queue) -> None:
    """A lease of half a second is over after half a second, and not before."""
    await queue.record()
    brief = attrs.evolve(queue, claims=attrs.evolve(queue.claims, leases={Milestone.CREATED: 0.5}))
    first = await brief.claim()
    assert await brief.ask() == NoWork()
    with trio.fail_after(5):
        second = await soon(brief)
    assert (second.record_id, second.token != first.token) == (first.record_id, True)
    taken, taken_again = await queue.events(first.record_id)
    assert taken_again["at"] - taken["at"] >= timedelta(seconds=0.5)


@pytest.mark.parametrize("milestone", list(LEASES))
async def test_the_lease_belongs_to_the_milestone_and_is_written_as_seconds(
    queue: Queue, milestone: Milestone
) -> None:
    """The claim writes the milestone's number of seconds, counts itself, and says so in the history."""
    record_id = await queue.record(milestone)
    claim = await queue.claim()
    row = await queue.row(record_id)
    assert row["lease_seconds"] == LEASES[milestone]
    assert row["lease_until"] - row["claimed_at"] == timedelta(seconds=LEASES[milestone])
    assert (row["wake_at"], row["failures"], row["claimed_by"]) == (row["lease_until"], 1, "one")
    [event] = await queue.events(record_id)
    assert (event["kind"], event["milestone"], event["token"]) == ("claimed", milestone, claim.token)
    assert (event["by"], event["settles"]) == ("one", False)
    assert event["detail"] == {"failures": 1, "lease_seconds": LEASES[milestone]}


async def test_what_is_not_ready_is_not_claimed(queue: Queue) -> None:
    """Stopped, deleted, done, deferred and held records are no work, not even when all lanes are free."""
    stop = {"stop_code": "overdue", "stop_reason": "late", "stopped_at": NOON, "stopped_by": "one"}
    for failures in (0, FAILURES_LIMIT + 1):
        await queue.change(await queue.record(failures=failures), **stop)
    await queue.record(deleted_at=NOON)
    await queue.record(deleted_at=NOON, failures=FAILURES_LIMIT + 1)
    await queue.record(Milestone.DONE)
    await queue.record(wake_at=NOON + timedelta(days=36500))
    await queue.record(wake_at=NOON + timedelta(days=36500), failures=FAILURES_LIMIT)
    assert await queue.ask() == NoWork()
    await queue.claims.wake()
    assert await queue.ask() == NoWork()


async def test_a_lane_without_a_free_slot_keeps_its_records(queue: Queue) -> None:
    """A claim gets nothing of a lane it did not name."""
    record_id = await queue.record()
    assert await queue.ask([]) == NoWork()
    assert await queue.ask(["whisper"]) == NoWork()
    assert (await queue.claim(["convert"])).record_id == record_id


async def test_an_exhausted_record_is_found_without_a_free_lane(queue: Queue) -> None:
    """With a limit of N it takes a lane N times; after that it is claimed, to be stopped, with none free."""
    record_id = await queue.record()
    for n in range(FAILURES_LIMIT):
        assert await queue.ask([]) == NoWork(), n
        claim = await queue.claim()
        assert await queue.ask([]) == NoWork(), "a running last attempt is not yet exhausted"
        assert await queue.settle(claim, Failed("no luck"), {"cause": "no luck"}) == Settled()
    claim = await queue.claim([])
    assert (claim.record_id, (await queue.row(record_id))["failures"]) == (record_id, FAILURES_LIMIT + 1)
    assert await queue.claims.last_failure(claim) == LastFailure(kind="failed", cause="no luck")
    ending = Hopeless(StopCode.ATTEMPTS_EXHAUSTED, "no luck, three times")
    assert await queue.settle(claim, ending) == Settled(stopped=StopCode.ATTEMPTS_EXHAUSTED)
    assert await queue.ask() == NoWork()


async def test_a_record_that_takes_its_process_down_is_exhausted_as_well(queue: Queue) -> None:
    """N claims that nobody settles are N failures: the next needs no lane and finds no end of the last."""
    await queue.record()
    for _ in range(FAILURES_LIMIT):
        await queue.lapse((await queue.claim()).record_id)
    claim = await queue.claim([])
    assert await queue.claims.last_failure(claim) == LastFailure(kind=None, cause=None)


async def test_renewing_pushes_the_lease_by_the_stored_number(queue: Queue) -> None:
    """Each lease is pushed by the seconds of its own claim, whatever the process would say now."""
    short, long = await queue.record(), await queue.record(Milestone.TRANSCRIBE)
    tokens = {(claim := await queue.claim()).record_id: claim.token for _ in range(2)}
    for record_id in tokens:
        await queue.lapse(record_id)
    other = attrs.evolve(queue.claims, leases=dict.fromkeys(LEASES, 1.0))
    before = {record_id: await queue.row(record_id) for record_id in tokens}
    assert await other.renew([*tokens.values(), uuid4()]) == {tokens[short]: 60.0, tokens[long]: 90.0}
    for record_id, seconds in ((short, 60), (long, 90)):
        row = await queue.row(record_id)
        pushed = (row["lease_until"] - before[record_id]["lease_until"]).total_seconds()
        assert seconds < pushed < seconds + 15
        changed = {name for name in row if row[name] != before[record_id][name]}
        assert (changed, row["wake_at"]) == ({"lease_until", "wake_at"}, row["lease_until"])
    assert await queue.ask() == NoWork()
    assert await queue.kinds(short) == ["claimed"]


async def _stop(queue: Queue, record_id: UUID) -> None:
    assert await owner.stop(queue.database, record_id, None, "anna") is owner.Verdict.DONE


async def _lift(queue: Queue, record_id: UUID) -> None:
    await _stop(queue, record_id)
    assert await owner.lift(queue.database, record_id, None, "anna") is owner.Verdict.DONE


async def _delete(queue: Queue, record_id: UUID) -> None:
    assert await owner.delete(queue.database, record_id, None, "anna") is owner.Verdict.DONE


async def _delete_and_undelete(queue: Queue, record_id: UUID) -> None:
    await _delete(queue, record_id)
    assert await owner.undelete(queue.database, record_id, None, "anna") is owner.Verdict.DONE


@pytest.mark.parametrize("lose", [_stop, _lift, _delete, _delete_and_undelete])
async def test_renewing_revives_nothing(queue: Queue, lose: Callable[[Queue, UUID], Awaitable[None]]) -> None:
    """A claim that a person ended is nobody's: it is not among the renewed, and its row stays as it is."""
    record_id = await queue.record()
    claim = await queue.claim()
    await lose(queue, record_id)
    before = await queue.everything(record_id)
    assert await queue.claims.renew([claim.token]) == {}
    assert await queue.everything(record_id) == before


async def test_waking_leaves_token_and_lease_alone(queue: Queue) -> None:
    """A woken record with a lapsed lease still is its holder's, who may renew and settle it."""
    held, deferred = await queue.records(2)
    claim = await queue.claim()
    await queue.settle(await queue.claim(), Deferred(30, conversion()))
    await queue.lapse(held)
    await queue.come_due(deferred)
    before = await queue.row(held)
    await queue.claims.wake()
    assert await queue.row(held) == before | {"wake_at": None}
    assert (await queue.row(deferred))["wake_at"] is None
    assert await queue.claims.renew([claim.token]) == {claim.token: LEASES[Milestone.CREATED]}
    assert (await queue.claim()).record_id == deferred
    assert await queue.ask() == NoWork(), "the renewed one is held again"
    assert await queue.settle(claim, Reached(conversion())) == Settled()


async def test_a_woken_record_is_claimed_anew_under_another_token(queue: Queue) -> None:
    """Waking a lapsed lease makes the record ready, and the next claim is like any other."""
    record_id = await queue.record()
    first = await queue.claim()
    await queue.lapse(record_id)
    await queue.claims.wake()
    second = await queue.claim()
    assert (second.record_id, second.token != first.token) == (record_id, True)
    assert await queue.claims.renew([first.token]) == {}


async def test_waking_rouses_nothing_before_its_time(queue: Queue) -> None:
    """What is held or deferred sleeps on, and what is stopped or deleted is not touched."""
    held = await queue.record()
    await queue.claim()
    later = await queue.record(wake_at=NOON + timedelta(days=36500))
    deleted = await queue.record(wake_at=NOON, deleted_at=NOON)
    before = [await queue.everything(record_id) for record_id in (held, later, deleted)]
    await queue.claims.wake()
    assert [await queue.everything(record_id) for record_id in (held, later, deleted)] == before


@pytest.mark.parametrize(
    ("ending", "detail", "told"),
    [
        (Failed("broken"), {"cause": "broken"}, LastFailure(kind="failed", cause="broken")),
        (TimedOut("slow"), {"cause": "slow"}, LastFailure(kind="timed_out", cause="slow")),
        (None, {}, LastFailure(kind=None, cause=None)),
    ],
)
async def test_the_last_failure_is_told_past_what_was_given_back(
    queue: Queue, ending: Failed | TimedOut | None, detail: dict[str, str], told: LastFailure
) -> None:
    """The reason of a stop is how the last counted attempt ended; one that was given back has none."""
    record_id = await queue.record()
    first = await queue.claim()
    assert await queue.claims.last_failure(first) is None
    if ending is None:
        await queue.lapse(record_id)
    else:
        await queue.settle(first, ending, detail)
    await queue.settle(await queue.claim(), GivenBack("the service was stopped"), {"why": "stop"})
    assert await queue.claims.last_failure(await queue.claim()) == told


async def test_reading_needs_a_record_that_is_there(queue: Queue) -> None:
    """An unknown and a deleted record are "not found", which is no error and not "no work"."""
    unknown = uuid4()
    assert await queue.claims.read(unknown) == NotFound(unknown)
    record_id = await queue.record()
    await queue.claim()
    await _delete(queue, record_id)
    assert await queue.claims.read(record_id) == NotFound(record_id)


async def test_a_token_in_use_cannot_be_used_again(queue: Queue) -> None:
    """Two records never carry one token: the second claim with it is refused, and takes nothing."""
    first, second = await queue.records(2)
    claim = await queue.claim()
    assert claim.record_id == first
    before = await queue.everything(second)
    with pytest.raises(Exception, match="records_claim"):
        await queue.claims.claim(claim.token, EVERY_LANE)
    assert await queue.everything(second) == before


async def test_two_daemons_with_limits_of_their_own(queue: Queue) -> None:
    """Each process judges by its own limit and its own leases; the queue is one."""
    record_id = await queue.record(Milestone.TRANSCRIBE, failures=1)
    assert await queue.ask([]) == NoWork()
    claim = await queue.elsewhere(limit=1).claim([])
    assert claim.record_id == record_id
    assert await queue.settle(claim, Deferred(0, advance())) == Settled()
    assert await claims_of(queue.database, queue.store, limit=1).claim(uuid4(), []) == NoWork()

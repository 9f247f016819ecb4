"""The keeper: leases are renewed in time or end the work, and what nobody holds is paid back."""

import math
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from daemon.keeper import WHY_LATE, Keeper, work_until
from stages.stage import Outcome, Tools
from storage.claim import Claim
from storage.database import Database
from storage.record import Milestone, Record
from tests.builders import LEASES, a_queue
from tests.daemon.assembly import House, a_house, a_line, hang
from tests.daemon.door import after, answer_lost, away, first, late
from tests.daemon.memory import MemoryQueue
from tests.waiting import until

LEASE = LEASES[Milestone.CREATED]


@pytest.fixture
async def house(tmp_path: Path) -> House:
    """A house in virtual time, whose first stage hangs."""
    return a_house(MemoryQueue(), tmp_path, a_line(play=hang))


def memory(house: House) -> MemoryQueue:
    """Return the queue of a house in virtual time."""
    assert isinstance(house.queue, MemoryQueue)
    return house.queue


@pytest.mark.parametrize(("lease", "margin"), [(1.0, 0.1), (10.0, 1.0), (50.0, 5.0), (3600.0, 5.0)])
def test_work_ends_a_little_before_its_lease(lease: float, margin: float) -> None:
    """By a tenth, five seconds at most."""
    assert work_until(100.0, lease) == pytest.approx(100.0 + lease - margin)


async def test_a_renewal_counts_from_before_it_was_asked_for(autojump_clock: MockClock, house: House) -> None:
    """Its answer may have taken long; the lease on the server began in between."""
    await house.record()
    taken = await house.take()
    assert taken.hold.scope.deadline == work_until(trio.current_time(), LEASE)
    await trio.sleep(20)
    asked_at = trio.current_time()
    house.door.then("renew", late(9))
    with capture_logs() as entries:
        await house.keeper.renew()
    assert trio.current_time() == asked_at + 9
    assert taken.hold.scope.deadline == work_until(asked_at, LEASE)
    assert entries == [{"event": "keeper.renewed", "log_level": "debug", "claims": 1}]
    assert house.metrics.value("rubezh_claims_held") == 1
    assert house.metrics.value("rubezh_leases_renewed_total") == 1
    assert house.metrics.value("rubezh_leases_lost_total") == 0


async def test_a_claim_counts_from_before_it_was_asked_for(autojump_clock: MockClock, house: House) -> None:
    """The same for the first lease, by the milestone's own number."""
    await house.record(Milestone.TRANSCRIBE)
    asked_at = trio.current_time()
    house.door.then("claim", late(7))
    house.door.then("read", late(3))
    taken = await house.take()
    assert taken.hold.scope.deadline == work_until(asked_at, LEASES[Milestone.TRANSCRIBE])


async def test_a_renewal_is_by_the_number_that_was_written_at_the_claim(
    autojump_clock: MockClock, house: House
) -> None:
    """Whatever the settings of this process say now."""
    record = await house.record()
    taken = await house.take()
    memory(house).claims.rows[record].lease_seconds = 200.0
    await house.keeper.renew()
    assert taken.hold.scope.deadline == work_until(trio.current_time(), 200.0)


async def test_what_is_not_claimed_yet_is_neither_renewed_nor_lost(
    autojump_clock: MockClock, house: House
) -> None:
    """The claim may still be on its way; its token would not come back."""
    with house.keeper.holding(uuid4()) as coming:
        await house.keeper.renew()
        assert house.door.calls["renew"] == 0, "with nothing to renew nothing is asked"
        await house.record()
        taken = await house.take()
        await house.keeper.renew()
        assert not coming.scope.cancel_called
        assert coming.scope.deadline == math.inf
        assert not taken.hold.scope.cancel_called


async def test_a_token_that_does_not_come_back_ends_the_work(autojump_clock: MockClock, house: House) -> None:
    """And only that one's."""
    lost, _ = await house.record(), await house.record()
    first_taken, second_taken = await house.take(), await house.take()
    await memory(house).stop(lost)
    await house.keeper.renew()
    assert first_taken.hold.scope.cancel_called
    assert not second_taken.hold.scope.cancel_called
    assert house.metrics.value("rubezh_leases_lost_total") == 1


async def test_an_attempt_that_is_settled_during_a_renewal_is_none_of_its_business(
    autojump_clock: MockClock, house: House
) -> None:
    """Its token does not come back, and its hold is gone by then."""
    await house.record()
    with ExitStack() as keeping:
        taken = await house.workers.look(keeping)

        async def settle() -> None:
            await house.keeper._claims.give_back(taken.claim.token, "settled meanwhile")  # type: ignore[union-attr]  # noqa: SLF001 - nobody else may see them
            keeping.close()

        house.door.then("renew", first(settle))
        await house.keeper.renew()
        assert house.keeper._holds == {}  # noqa: SLF001 - nobody else may see them


async def test_the_keeper_keeps_work_alive_far_past_its_first_lease(
    autojump_clock: MockClock, house: House
) -> None:
    """As long as the database answers, also every other time only."""
    record = await house.record()
    house.door.then("renew", *[away, late(1)] * 1000)
    async with house.serving(keeping=True):
        await trio.sleep(8 * LEASE)
        assert house.lanes["convert"].busy == 1
        assert memory(house).now(record).failures == 1
    assert house.marks() == {"given_back": 1}


async def test_s_p2_work_ends_before_its_lease_does(autojump_clock: MockClock, house: House) -> None:
    """Renewals reach nobody: the stage is cancelled before another claim gets the record; it stays spent."""
    ended_at: list[float] = []

    async def note(record: Record, tools: Tools) -> Outcome:
        try:
            return await hang(record, tools)
        finally:
            ended_at.append(trio.current_time())

    queue = memory(house)
    house = a_house(queue, house.store.root.parent, a_line(play=note))
    record = await house.record()
    with capture_logs() as entries:
        async with house.serving(keeping=True):
            await until(lambda: house.lanes["convert"].busy == 1)
            await trio.sleep(25)  # two renewals reach it
            renewed_at = math.floor(trio.current_time() / 10) * 10
            house.door.always["*"] = away
            await until(lambda: bool(ended_at), seconds=2 * LEASE)
            assert ended_at == [work_until(renewed_at, LEASE)]
            row = queue.claims.rows[record]
            assert row.wake_at is not None
            assert ended_at[0] <= row.wake_at - 5, "nobody else could have had it"
            assert row.record.failures == 1
            await trio.sleep(1)
            assert house.marks() == {"lost": 1}
            house.stop.ask("test")
    assert queue.now(record).failures == 1, "spent"
    assert [entry["event"] for entry in entries if entry["log_level"] in ("warning", "error")] == [
        "database.away",
        "claim.lost",
    ]


async def test_s_p2_on_a_real_lease(database: Database, tmp_path: Path) -> None:
    """With the keeper cut off the stage ends while its lease still holds; another gets the record later."""
    queue = await a_queue(database)
    leases = dict(LEASES) | {Milestone.CREATED: 1.5}
    object.__setattr__(queue.claims, "leases", leases)
    house = a_house(queue, tmp_path, a_line(play=hang))
    house.door.then("renew", *[away] * 100)
    record = await house.record()
    taken = await house.take()
    await house.attempts.run(taken)
    row = await queue.row(record)
    assert (row["claim_token"], row["failures"]) == (taken.claim.token, 1), "nothing was written"
    assert house.marks() == {"lost": 1}
    again = queue.elsewhere()

    async def is_claimed() -> bool:
        return isinstance(await again.ask(), Claim)

    assert not await is_claimed(), "the lease is still there when the work has ended"
    await until(is_claimed)


async def test_a_claim_that_is_late_is_given_back_once_it_comes(
    autojump_clock: MockClock, house: House
) -> None:
    """Its answer was lost and it reaches the database later than that: it is looked for until it is there."""
    record, token = await house.record(), uuid4()
    house.keeper.give_back_later(token)
    await house.keeper.pay_back()
    assert house.debts.open_at(trio.current_time()) == [token], "not yet"
    await memory(house).claims.claim(token, ["convert"])
    with capture_logs() as entries:
        await house.keeper.pay_back()
    assert memory(house).now(record).failures == 0
    assert house.debts.open_at(trio.current_time()) == []
    assert [(entry["event"], entry["log_level"]) for entry in entries] == [("give_back.repaid", "info")]


async def test_a_claim_that_never_comes_is_forgotten_after_the_longest_lease(
    autojump_clock: MockClock, house: House
) -> None:
    """It cannot come any more then."""
    house.keeper.give_back_later(uuid4())
    longest = max(LEASES.values())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.keeper.keep, 10.0)
        await trio.sleep(longest + 30)
        nursery.cancel_scope.cancel()
    assert house.door.calls["give_back"] == longest // 10 + 1


async def test_a_give_back_whose_answer_was_lost_is_not_done_twice(
    autojump_clock: MockClock, house: House
) -> None:
    """The second try finds nobody with that token, and the count stays right."""
    record = await house.record(failures=1)
    with ExitStack() as keeping:
        taken = await house.workers.look(keeping)
    house.keeper.give_back_later(taken.claim.token)  # type: ignore[union-attr]  # it was taken
    house.door.then("give_back", answer_lost)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.keeper.keep, 10.0)
        await trio.sleep(200)
        nursery.cancel_scope.cancel()
    assert memory(house).now(record).failures == 1
    assert house.debts.open_at(trio.current_time()) == []


async def test_a_keeper_outlives_any_outage(autojump_clock: MockClock, house: House) -> None:
    """Two lines in all for hours of it; afterwards everything goes on."""
    house.keeper.give_back_later(uuid4())
    with capture_logs() as entries:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(house.keeper.keep, 10.0)
            await trio.sleep(1)
            house.door.always["*"] = away
            await trio.sleep(3600)
            house.door.always.clear()
            await house.record()
            await house.take()
            await trio.sleep(20)
            assert house.door.calls["wake"] > 1
            nursery.cancel_scope.cancel()
    loud = [entry["event"] for entry in entries if entry["log_level"] in ("info", "warning", "error")]
    assert loud == ["database.away", "database.returned"]


async def test_it_promises_to_be_heard_from_again(autojump_clock: MockClock, house: House) -> None:
    """Before each wait, with its length; one that hangs in a call breaks the promise."""
    promised: list[tuple[float, float]] = []

    async def never_come_back(proceed: object) -> object:
        del proceed
        await trio.sleep_forever()
        raise AssertionError

    keeper = Keeper(
        house.keeper._claims,  # noqa: SLF001 - the same claims, another keeper
        house.debts,
        house.keeper._outage,  # noqa: SLF001 - the same outage, another keeper
        house.keeper._metrics,  # noqa: SLF001 - the same metrics, another keeper
        lambda seconds: promised.append((trio.current_time(), seconds)),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keeper.keep, 10.0)
        await trio.sleep(25)
        times = [at for at, _ in promised]
        assert {seconds for _, seconds in promised} == {10.0}
        assert all(later - earlier <= 10 for earlier, later in pairwise(times))
        assert times[-1] >= 20
        house.door.always["wake"] = never_come_back
        await trio.sleep(100)
        assert promised[-1][0] < 40
        nursery.cancel_scope.cancel()


async def test_a_fault_of_ours_ends_the_keeper(autojump_clock: MockClock, house: House) -> None:
    """Work without a keeper is not safe: it must not go on unnoticed."""

    async def stumble(proceed: object) -> object:
        raise RuntimeError("a fault of ours")

    house.door.always["wake"] = stumble
    with pytest.raises(RuntimeError, match="ours"):
        await house.keeper.keep(10.0)


async def test_an_orderly_end_writes_down_what_is_held_and_what_is_owed(
    autojump_clock: MockClock, house: House
) -> None:
    """Each token once; not that of a failure, which is the record's own."""
    await house.record(), await house.record()
    held, failed, lost = await house.take(), await house.take(), uuid4()
    failed.hold.owed = False
    house.keeper.give_back_later(lost)
    house.keeper.owe()
    house.keeper.owe()
    folder = house.store.root.parent / "owed"
    assert {UUID(file.name) for file in folder.iterdir()} == {held.claim.token, lost}


async def test_a_token_is_never_held_and_owed_at_once(autojump_clock: MockClock, house: House) -> None:
    """What is owed is of claims that nobody here holds: a hold ends before its debt begins."""
    token = uuid4()
    with house.keeper.holding(token) as hold:
        hold.unpaid = True
        assert house.debts.open_at(0) == []
    assert house.debts.open_at(0) == [token]
    assert house.keeper._holds == {}  # noqa: SLF001 - nobody else may see them


async def test_a_late_give_back_says_why(database: Database, tmp_path: Path) -> None:
    """The record's own history tells it apart from the stop of a service."""
    queue = await a_queue(database)
    house = a_house(queue, tmp_path)
    record = await house.record()
    house.door.then("claim", answer_lost)
    with ExitStack() as keeping:
        await house.workers.look(keeping)
    assert (await queue.row(record))["failures"] == 1
    await house.keeper.pay_back()
    event = (await queue.events(record))[-1]
    assert (event["kind"], event["detail"]["why"]) == ("given_back", WHY_LATE)
    assert (await queue.row(record))["failures"] == 0


async def test_what_has_come_due_is_woken(database: Database, tmp_path: Path) -> None:
    """The keeper lets it join those that wait, so that claims stay cheap."""
    queue = await a_queue(database)
    house = a_house(queue, tmp_path)
    record = await house.record()
    await queue.come_due(record)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.keeper.keep, 0.05)

        async def is_awake() -> bool:
            return (await queue.row(record))["wake_at"] is None

        await until(is_awake)
        nursery.cancel_scope.cancel()


async def test_a_slow_renewal_does_not_push_what_has_ended(autojump_clock: MockClock, house: House) -> None:
    """The work ended while the answer was on its way: nothing revives it."""
    await house.record()
    taken = await house.take()
    house.door.then("renew", after(LEASE))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.keeper.renew)
        await house.attempts.run(taken)
        assert trio.current_time() == work_until(0, LEASE)
    assert house.marks() == {"lost": 1}

"""What an explanation stands on: the claim's conditions as the database has them, and signs of life."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from attrs import evolve

from daemon.explain import explain
from storage.claim import Claim, NotFound, NoWork
from storage.claims import Claims
from storage.daemons import LaneSign, Pulse, Sign, take_leave, takes_writes
from storage.database import Database, open_database
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached
from storage.explaining import Facts, read_facts
from storage.owner import delete, lift, stop
from storage.record import Milestone, StopCode
from tests.builders import EVERY_LANE, LEASES, Queue, a_queue, advance, ask, conversion, put_store

FREE = LaneSign(name="convert", slots=1, busy=0, closed_because=None)
AWAY = LaneSign(name="convert", slots=1, busy=0, closed_because="no\0 room \udce9")
OTHER = LaneSign(name="whisper", slots=2, busy=1, closed_because=None)


def sign(lane: LaneSign = FREE, *, workers: int = 3) -> Sign:
    """Return the sign of a daemon with two lanes."""
    return Sign(host="host", pid=4711, beat_seconds=10.0, workers=workers, lanes=(lane, OTHER))


def living(queue: Queue, given: Sign | None = None) -> Claims:
    """Return the claims of a process that gives signs of life."""
    return evolve(queue.claims, sign=lambda: given or sign())


async def facts_of(queue: Queue, record_id: object) -> Facts:
    """Read the facts of a record that is there."""
    facts = await read_facts(queue.database, record_id)  # type: ignore[arg-type]  # an id of a record
    assert isinstance(facts, Facts)
    return facts


async def excluded(queue: Queue, record_id: object) -> tuple[str, ...]:
    """Return what excludes a record from being claimed."""
    return explain(await facts_of(queue, record_id), None).excluded_by


async def ready(_queue: Queue) -> None:
    """Leave it as it is."""


async def held(queue: Queue) -> None:
    """Have it claimed."""
    await queue.claim()


async def lapsed(queue: Queue) -> None:
    """Have it claimed, and its lease run out."""
    claim = await queue.claim()
    await queue.lapse(claim.record_id)


async def deferred(queue: Queue) -> None:
    """Have its stage ask for an hour."""
    await queue.settle(await queue.claim(), Deferred(600.0, advance()))


async def due_again(queue: Queue) -> None:
    """Have its delay be over."""
    claim = await queue.claim()
    await queue.settle(claim, Deferred(600.0, advance()))
    await queue.come_due(claim.record_id)


async def failed(queue: Queue) -> None:
    """Have it fail, to be tried again later."""
    await queue.settle(await queue.claim(), Failed("boom"), {"cause": "boom"}, retry_delay=60.0)


async def failed_and_ready(queue: Queue) -> None:
    """Have it fail, to be tried again at once."""
    await queue.settle(await queue.claim(), Failed("boom"), {"cause": "boom"})


async def given_back(queue: Queue) -> None:
    """Have it given back."""
    await queue.settle(await queue.claim(), GivenBack("stop"))


async def hopeless(queue: Queue) -> None:
    """Have it stopped by its stage."""
    await queue.settle(await queue.claim(), Hopeless(StopCode.SILENT, "nobody spoke"))


async def stopped(queue: Queue) -> None:
    """Have a person stop it."""
    [row] = await ask(queue.database, "SELECT id FROM records")
    await stop(queue.database, row["id"], None, "anna")


async def lifted(queue: Queue) -> None:
    """Have a person stop and lift it."""
    await stopped(queue)
    [row] = await ask(queue.database, "SELECT id FROM records")
    await lift(queue.database, row["id"], None, "anna")


async def deleted(queue: Queue) -> None:
    """Have a person delete it."""
    [row] = await ask(queue.database, "SELECT id FROM records")
    await delete(queue.database, row["id"], None, "anna")


async def done(queue: Queue) -> None:
    """Have it done."""
    await queue.settle(await queue.claim(), Reached(advance()))


PATHS: dict[Callable[[Queue], Awaitable[None]], tuple[str, ...]] = {
    ready: (),
    held: ("due", "not held"),
    lapsed: (),
    deferred: ("due",),
    due_again: (),
    failed: ("due",),
    failed_and_ready: (),
    given_back: (),
    hopeless: ("not stopped",),
    stopped: ("not stopped",),
    lifted: (),
    deleted: ("not deleted",),
    done: ("not done",),
}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
async def test_s_o10_what_is_explained_is_what_the_claim_does(
    database: Database, path: Callable[[Queue], Awaitable[None]]
) -> None:
    """Nothing excludes the record if and only if a claim takes it, whatever became of it before."""
    queue = await a_queue(database)
    record = await queue.record(Milestone.TRANSCRIBE)
    await living(queue).wake()
    await path(queue)
    assert await excluded(queue, record) == PATHS[path]
    claimed = await queue.ask()
    assert isinstance(claimed, Claim) is (PATHS[path] == ())


async def test_a_record_whose_row_is_locked_is_passed_over(database: Database, dsn: str) -> None:
    """By the claim and in the explanation alike; an explanation of what is not ready locks nothing."""
    queue = await a_queue(database)
    record = await queue.record()
    await living(queue).wake()
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM records FOR KEY SHARE")
        assert await excluded(queue, record) == ("not locked",)
        assert not isinstance(await queue.ask(), Claim)
    assert await excluded(queue, record) == ()
    assert isinstance(await queue.ask(), Claim)
    assert (await facts_of(queue, record)).is_not_locked is None


async def test_s_o12_nobody_claims_until_a_daemon_gives_a_sign_of_life(database: Database) -> None:
    """Then it is alive until it has missed three; an orderly end takes the sign away."""
    queue = await a_queue(database)
    record = await queue.record()
    assert "a daemon claims" in await excluded(queue, record)
    await living(queue).wake()
    [daemon] = (await facts_of(queue, record)).daemons
    assert (daemon.run, daemon.host, daemon.pid, daemon.workers) == ("one", "host", 4711, 3)
    assert (daemon.failures_limit, daemon.lanes) == (queue.claims.failures_limit, (FREE, OTHER))
    assert daemon.is_alive
    await ask(database, "UPDATE daemons SET beat_at = beat_at - interval '31 s'")
    assert "a daemon claims" in await excluded(queue, record)
    await living(queue).wake()
    assert await excluded(queue, record) == ()
    await take_leave(database, "one")
    assert (await facts_of(queue, record)).daemons == ()


async def test_an_idle_daemon_gives_its_signs_with_its_claims_and_asks_nothing_else(
    database: Database,
) -> None:
    """What is due in a lane that was not asked for shows that the wake was left out, and then made up for."""
    queue = await a_queue(database)
    claims = living(queue)
    sleeping = await queue.record(Milestone.TRANSCRIBE, wake_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert await claims.claim(uuid4(), ["convert"]) == NoWork()
    assert [row["run"] for row in await ask(database, "SELECT run FROM daemons")] == ["one"]
    await claims.wake()
    assert (await queue.row(sleeping))["wake_at"] is not None
    claims.pulse.beat_seconds = 0.0
    await claims.wake()
    assert (await queue.row(sleeping))["wake_at"] is None, "the next sign is due, and goes with a wake"


async def test_a_daemon_that_works_wakes_what_is_due(database: Database) -> None:
    """Its last claim found a record."""
    queue = await a_queue(database)
    claims = living(queue)
    await queue.record()
    sleeping = await queue.record(Milestone.TRANSCRIBE, wake_at=datetime(2026, 1, 1, tzinfo=UTC))
    claim = await claims.claim(uuid4(), ["convert"])
    assert isinstance(claim, Claim)
    await claims.read(claim.record_id)
    assert await claims.claim(uuid4(), ["convert"]) == NoWork()
    assert (await queue.row(sleeping))["wake_at"] is None


def test_a_sign_is_due_at_once_and_then_once_a_beat() -> None:
    """A tenth early, or one that is looked for every second would come later and later."""
    now = [100.0]
    pulse = Pulse(lambda: now[0])
    assert pulse.is_due
    pulse.beat_seconds = 10.0
    pulse.felt()
    due = []
    for now[0] in (100.0, 108.9, 109.0, 120.0):
        due.append(pulse.is_due)
    assert due == [False, False, True, True]


async def test_s_o11_each_sign_tells_anew_what_keeps_a_daemon_from_claiming(database: Database) -> None:
    """A lane that was closed, in words that PostgreSQL takes; the start stays what it was."""
    queue = await a_queue(database)
    record = await queue.record()
    await living(queue).wake()
    started = (await facts_of(queue, record)).daemons[0].started_at
    await living(queue, sign(AWAY)).wake()
    [daemon] = (await facts_of(queue, record)).daemons
    assert daemon.started_at == started
    assert daemon.lanes[0].closed_because == "no  room ?"
    assert await excluded(queue, record) == ("lane free",)


async def test_a_daemon_with_another_store_is_told_apart(database: Database) -> None:
    """It gives its sign, and would not claim this record."""
    queue = await a_queue(database)
    record = await queue.record()
    await living(queue.elsewhere(await put_store(database))).wake()
    assert await excluded(queue, record) == ("store mounted", "stage known", "lane free")


async def test_an_exhausted_record_passes_a_closed_lane(database: Database) -> None:
    """In the claim and in the explanation alike."""
    queue = await a_queue(database)
    record = await queue.record(failures=queue.claims.failures_limit)
    await living(queue, sign(AWAY)).wake()
    assert await excluded(queue, record) == ()
    assert isinstance(await queue.ask(["whisper"]), Claim)


async def test_daemons_of_yesterday_are_forgotten(database: Database) -> None:
    """By whoever gives a sign; a wake without one leaves them alone."""
    queue = await a_queue(database)
    await living(queue).wake()
    await ask(database, "UPDATE daemons SET beat_at = beat_at - interval '25 h'")
    await queue.elsewhere().claims.wake()
    assert len(await ask(database, "SELECT run FROM daemons")) == 1
    await living(queue.elsewhere()).wake()
    assert await ask(database, "SELECT run FROM daemons") == [{"run": "two"}]


async def test_the_attempts_since_the_last_step_are_told_with_their_causes(database: Database) -> None:
    """Also one that has no end; not one that was given back, nor what was before the last success."""
    queue = await a_queue(database)
    record = await queue.record()
    await queue.settle(await queue.claim(), Failed("long ago"), {"cause": "long ago"})
    await queue.settle(await queue.claim(), Reached(conversion()))
    await queue.settle(await queue.claim(), Failed("boom"), {"cause": "boom"})
    await lapsed(queue)
    await queue.settle(await queue.claim(), GivenBack("stop"))
    await queue.claim()
    attempts = (await facts_of(queue, record)).attempts
    assert [(each.kind, each.cause, each.is_running) for each in attempts] == [
        (None, None, True),
        (None, None, False),
        ("failed", "boom", False),
    ]


async def test_ready_since_and_the_place_in_the_queue(database: Database) -> None:
    """Since its last event, or the end of its delay or its lease; neither while it is not ready."""
    queue = await a_queue(database)
    first, second = await queue.records(2)
    await queue.settle(await queue.claim(), Deferred(600.0, advance()))
    facts = await facts_of(queue, first)
    assert (facts.ready_since, facts.ahead) == (None, None)
    assert (await facts_of(queue, second)).ahead == 0
    await queue.come_due(first)
    due = (await queue.row(first))["wake_at"]
    await ask(database, "UPDATE events SET at = at - interval '3 h'")
    facts = await facts_of(queue, first)
    assert facts.ready_since is not None
    assert abs(facts.ready_since - due) < timedelta(seconds=1)
    await queue.claims.wake()
    await lift(database, first, None, "anna")  # not stopped: nothing changes
    assert (await facts_of(queue, second)).ahead == 1
    third = await queue.record(created_at=datetime(2026, 2, 1, tzinfo=UTC))
    assert (await facts_of(queue, third)).ahead == 2


async def test_an_unknown_record_is_not_found_and_a_deleted_one_is(database: Database) -> None:
    """The service owner may still ask what became of it."""
    queue = await a_queue(database)
    assert isinstance(await read_facts(database, uuid4()), NotFound)
    record = await queue.record()
    await delete(database, record, None, "anna")
    facts = await facts_of(queue, record)
    assert facts.deleted_at is not None
    assert facts.record is None


async def test_a_read_only_database_is_the_reason(database: Database, dsn: str) -> None:
    """And asking for it needs no write."""
    queue = await a_queue(database)
    record = await queue.record()
    await living(queue).wake()
    assert await takes_writes(database, 5.0)
    name = psycopg.sql.Identifier(str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]))
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute(
            psycopg.sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name)
        )
    async with open_database(dsn, pool_size=1, call_seconds=20, statement_seconds=10, listen=True) as later:
        assert not await takes_writes(later, 5.0)
        assert await excluded(evolve(queue, database=later), record) == ("database takes writes",)


def test_the_lanes_of_these_tests_are_the_queue_s() -> None:
    """Or the explanation would speak of others than the claim."""
    assert {FREE.name, OTHER.name} == set(EVERY_LANE)
    assert set(LEASES) == set(Milestone) - {Milestone.DONE}

"""The wire to PostgreSQL fails at every message in turn: nothing is lost, doubled or left held.

Each attempt, call and migration is first done over a whole wire, which counts its messages; then once more
for each, with the wire failing at that one. Several are done side by side, each in a store of its own.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import trio
from attrs import define, evolve, field, fields, frozen
from structlog.testing import capture_logs

from storage.database import Database, open_database
from storage.errors import DatabaseUnavailable
from storage.migrate import migrate, migrations
from tests.builders import Queue, a_queue, ask, claims_of
from tests.conftest import own_database
from tests.faults.calls import CALLS, Prepare
from tests.faults.courses import COURSES, Course, attempt
from tests.faults.proof import check_history, see_through
from tests.wire import Failing, Fault, Towards, Wire, open_wire

CALL_SECONDS: Final = 0.5
# All are one transaction: these show what more of them would show again, for more time.
SOME_MIGRATIONS = migrations()[:4]
LATE_SECONDS: Final = 0.8  # past the deadline of a call
# A call is cancelled at its deadline, again a second after it and every second from then on. The driver by
# itself would wait for ten seconds; in between is room for a machine that is busy.
LONGEST_SECONDS: Final = CALL_SECONDS + 2.0
SLACK_SECONDS: Final = 4.0
SIDE_BY_SIDE: Final = 12


@frozen(kw_only=True)
class Timed(Database):
    """A database that keeps how long each call took."""

    took: list[float] = field(factory=list)

    async def transact_within(self, seconds: float, work: Any, *args: Any, **kwargs: Any) -> Any:
        """Do as it is, and keep the time."""
        began = trio.current_time()
        try:
            return await super().transact_within(seconds, work, *args, **kwargs)
        finally:
            self.took.append(trio.current_time() - began)


@define
class Bench:
    """A wire that fails at `fault` of the next `failing` block, and the queue over it and by a clean way."""

    wire: Wire
    far: Queue
    near: Queue
    fault: Fault | None = None
    passed: dict[Towards, int] = field(factory=dict)
    struck: bool = False

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Count messages, and fail at one; afterwards the wire is whole, but for what is late."""
        self.wire.fail_at(self.fault, LATE_SECONDS)
        yield
        self.passed, self.struck = dict(self.wire.passed), self.wire.struck
        self.wire.fail_at(None, LATE_SECONDS)


Lay = Callable[[], AbstractAsyncContextManager[Bench]]
Try = Callable[[Bench], Awaitable[None]]


@asynccontextmanager
async def far_database(wire: Wire) -> AsyncIterator[Timed]:
    """Open a database over a wire, with deadlines that a test can wait for."""
    async with AsyncExitStack() as stack:
        opening = partial(
            open_database,
            wire.dsn,
            pool_size=2,
            call_seconds=CALL_SECONDS,
            statement_seconds=CALL_SECONDS,
            listen=True,
        )
        opened: Database | None = None
        with trio.fail_after(30):
            while opened is None:
                try:
                    opened = await stack.enter_async_context(opening())
                except DatabaseUnavailable:  # a busy machine may need more than the time of a call: once more
                    await trio.sleep(0.01)
        yield Timed(**{str(each.alias): getattr(opened, each.name) for each in fields(Database)})


@asynccontextmanager
async def a_bench(database: Database, dsn: str) -> AsyncIterator[Bench]:
    """Lay a wire to the database, and have a queue in it whose store nobody else has mounted."""
    near = await a_queue(database)
    async with open_wire(dsn) as wire, far_database(wire) as far:
        claims = claims_of(far, near.store, by="far")
        yield Bench(wire, evolve(near, database=far, claims=claims), near)


@asynccontextmanager
async def an_empty_bench(cluster: str) -> AsyncIterator[Bench]:
    """Lay a wire to a database that has no tables yet."""
    with own_database(cluster, "template0") as dsn:
        async with (
            open_database(dsn, pool_size=2, call_seconds=20, statement_seconds=10, listen=True) as near,
            open_wire(dsn) as wire,
            far_database(wire) as far,
        ):
            yield Bench(wire, _nowhere(far), _nowhere(near))


def _nowhere(database: Database) -> Queue:
    """Return a queue that has no tables yet."""
    return Queue(database=database, owner=uuid4(), store=uuid4(), claims=claims_of(database))


async def at_every_message(lay: Lay, once: Try, failing: Failing, messages: int) -> None:
    """Do something on a whole wire, then for each of its messages with the wire failing there.

    It goes on, in each direction, until it has been done undisturbed.
    """
    async with lay() as bench:
        while sum(bench.passed.values()) < messages:  # a busy machine may miss a deadline by itself
            await once(bench)
        passed = bench.passed
    coming = deque(
        Fault(failing, towards, number) for towards, count in passed.items() for number in range(count + 1)
    )
    undisturbed: set[Towards] = set()

    async def work() -> None:
        async with lay() as bench:
            while coming:
                bench.fault = fault = coming.popleft()
                await until_answered(partial(ask, bench.far.database, "SELECT 1"))
                try:
                    await once(bench)
                except BaseException as error:
                    error.add_note(f"the wire failed at {fault}")
                    raise
                if not bench.struck:
                    undisturbed.add(fault.towards)
                elif fault.number >= passed[fault.towards]:
                    coming.append(evolve(fault, number=fault.number + 1))

    with capture_logs():
        async with trio.open_nursery() as nursery:
            for _ in range(SIDE_BY_SIDE):
                nursery.start_soon(work)
    assert undisturbed == set(Towards)


def one_attempt(course: Course, folder: Path) -> Try:
    """Return an attempt over a wire, after which the keeper pays and others bring the record to its end."""

    async def once(bench: Bench) -> None:
        record_id = await course.record(bench.near)
        state = folder / str(record_id)
        state.mkdir()
        house = course.house(bench.far, state, bench.near, record_id)
        with bench.failing():
            await attempt(house, course)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(house.keeper.keep, 0.1)
            await see_through(bench.near, record_id)
            nursery.cancel_scope.cancel()
        await check_history(bench.near, record_id)
        check_times(bench)

    return once


def one_call(prepare: Prepare) -> Try:
    """Return a call over a wire, said again until it is answered."""

    async def once(bench: Bench) -> None:
        call = await prepare(bench.near, bench.far)
        before = await bench.near.kinds(call.record_id)
        after = before if call.adds is None else [*before, call.adds]
        with bench.failing():
            await until_answered(call.act)
        assert await check_history(bench.near, call.record_id) == after
        row = await bench.near.row(call.record_id)
        if row["claim_token"] is not None:
            await bench.near.claims.give_back(row["claim_token"], "the test is over")
        await see_through(bench.near, call.record_id)
        await check_history(bench.near, call.record_id)
        check_times(bench)

    return once


async def one_migration(bench: Bench) -> None:
    """Migrate over a wire, look at what there is, and say it again until it is answered."""
    with bench.failing():
        try:
            taken = await migrate(bench.far.database, SOME_MIGRATIONS)
        except DatabaseUnavailable:
            taken = None
    tables = await ask(bench.near.database, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert taken is None or tables, "said to be done, and it is not"
    assert tables == [] or {row["tablename"] for row in tables} >= {"records", "events", "migrations"}
    await until_answered(partial(migrate, bench.far.database, SOME_MIGRATIONS))
    numbers = await ask(bench.near.database, "SELECT number FROM migrations ORDER BY number")
    assert [row["number"] for row in numbers] == [known.number for known in SOME_MIGRATIONS]
    assert await migrate(bench.near.database, SOME_MIGRATIONS) == 0
    await ask(bench.near.database, "DROP SCHEMA public CASCADE")
    await ask(bench.near.database, "CREATE SCHEMA public")


async def until_answered(call: Callable[[], Awaitable[object]]) -> None:
    """Say something again and again until it is answered."""
    with trio.fail_after(60):
        while True:
            try:
                await call()
            except DatabaseUnavailable:
                await trio.sleep(0.01)
            else:
                return


def check_times(bench: Bench) -> None:
    """No call took longer than is stated."""
    assert isinstance(bench.far.database, Timed)
    assert max(bench.far.database.took) < LONGEST_SECONDS + SLACK_SECONDS
    bench.far.database.took.clear()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said again is said again soon."""
    monkeypatch.setattr("daemon.attempt.SETTLE_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr("storage.submissions._PAUSE", 0.02)


def _cases(names: Iterable[str], telling: Mapping[Failing, Collection[str]]) -> list[Any]:
    """Return every name with every way of failing; those that tell least of their own are for `make deep`."""
    return [
        pytest.param(
            name,
            failing,
            id=f"{name}-{failing.name.lower()}",
            marks=() if name in telling[failing] else pytest.mark.deep,
        )
        for name, failing in product(names, Failing)
    ]


TELLING_COURSES: Final = {
    Failing.CUT: ("reached", "given back", "lost"),
    Failing.SWALLOW: ("reached",),
    Failing.DELAY: ("reached", "given back"),
}
TELLING_CALLS: Final = {
    Failing.CUT: ("renew", "wake", "give back", "accept under key", "finish upload", "stop", "delete"),
    Failing.SWALLOW: ("give back",),
    Failing.DELAY: ("accept or find", "give back"),
}


@pytest.mark.parametrize(("course", "failing"), _cases(COURSES, TELLING_COURSES))
async def test_an_attempt_survives_its_wire_failing_at_any_message(
    database: Database, dsn: str, tmp_path: Path, course: str, failing: Failing
) -> None:
    """Whatever was lost on the way, the record comes to its end once, and its events prove it."""
    lay = partial(a_bench, database, dsn)
    await at_every_message(lay, one_attempt(COURSES[course], tmp_path), failing, messages=30)


@pytest.mark.parametrize(("call", "failing"), _cases(CALLS, TELLING_CALLS))
async def test_a_call_survives_its_wire_failing_at_any_message(
    database: Database, dsn: str, call: str, failing: Failing
) -> None:
    """Said again, it has been done exactly once."""
    await at_every_message(partial(a_bench, database, dsn), one_call(CALLS[call]), failing, messages=8)


@pytest.mark.parametrize(
    "failing",
    [Failing.CUT, *(pytest.param(how, marks=pytest.mark.deep) for how in Failing if how.name != "CUT")],
)
async def test_a_migration_survives_its_wire_failing_at_any_message(
    loop: None, cluster: str, failing: Failing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut half-way it leaves the old schema or the new one; said again it leaves the new one, taken once."""
    monkeypatch.setattr("storage.migrate.LONGEST_SECONDS", 6 * CALL_SECONDS)
    await at_every_message(partial(an_empty_bench, cluster), one_migration, failing, messages=40)

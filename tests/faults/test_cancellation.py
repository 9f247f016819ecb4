"""Cancelled at any step, work ends whole: written or not, given back or counted, and nothing is left behind.

An attempt is cancelled at each of its own steps, as a stop or a crash elsewhere does it. A call to
the database is cancelled also at each step of the asyncio loop, where the driver waits.
"""

from collections.abc import AsyncIterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs

from daemon.stop import Stop
from storage.database import Database, open_database
from tests.builders import EVERY_LANE, Queue, a_queue
from tests.faults.calls import CALLS, Prepare
from tests.faults.courses import COURSES, Course, attempt
from tests.faults.proof import (
    check_history,
    check_pool,
    check_sessions,
    finish,
    release,
    remove,
)
from tests.faults.steps import cancelled_at

POOL: Final = 2
FEWEST_STEPS: Final = 6  # fewer, and something no longer counts them


@pytest.fixture
async def database(loop: None, dsn: str) -> AsyncIterator[Database]:
    """A database with few connections: one that is lost is missed at once."""
    async with open_database(
        dsn, pool_size=POOL, call_seconds=10, statement_seconds=5, listen=True
    ) as opened:
        yield opened


@pytest.fixture
async def queue(database: Database) -> Queue:
    """An empty queue."""
    return await a_queue(database)


async def every_attempt(
    queue: Queue, folder: Path, course: Course, *, stopping: bool, everybody: bool = False
) -> int:
    """Run an attempt and cancel it at step 0, 1, 2 ... until it ends before the cancel; return the steps."""
    cut_off = "given_back" if stopping or course.ends == "given_back" else "failed"
    for step in count():
        record_id = await course.record(queue)
        unclaimed = await queue.kinds(record_id)
        house = course.house(queue, folder, queue, record_id)

        def before(stop: Stop = house.stop) -> None:
            if stopping and not stop.asked:
                stop.ask("the test says so")

        with capture_logs():
            run = await cancelled_at(
                step, partial(attempt, house, course), before=before, everybody=everybody
            )
        assert house.debts.open_at(0.0) == [], f"step {step} left a debt, though every call was answered"
        assert [house.lanes[lane].busy for lane in EVERY_LANE] == [0, 0]
        await check_sessions(queue.database)
        kinds = await check_history(queue, record_id)
        assert (await queue.row(record_id))["claim_token"] is None, f"step {step}: nobody holds the record"
        ends = [course.ends] if not run.hit else [course.ends, cut_off]
        assert (run.hit and kinds == unclaimed) or kinds[-1] in ends, f"step {step}: {kinds}"
        await release(queue, record_id)
        await finish(queue, record_id)
        await remove(queue, record_id)
        if not run.hit:
            await check_pool(queue.database, POOL)
            return step
    raise AssertionError("steps are endless")


@pytest.mark.parametrize("by", ["a stop", "a crash"])
@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
async def test_an_attempt_cancelled_at_any_of_its_steps_ends_once(
    queue: Queue, tmp_path: Path, course: Course, by: str
) -> None:
    """It keeps the end it came to, or is given back by a stop and counted by a crash; nobody holds it."""
    assert await every_attempt(queue, tmp_path, course, stopping=by == "a stop") > FEWEST_STEPS


@pytest.mark.deep
@pytest.mark.parametrize("by", ["a stop", "a crash"])
@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
async def test_an_attempt_cancelled_at_any_step_of_the_whole_process_ends_once(
    queue: Queue, tmp_path: Path, course: Course, by: str
) -> None:
    """The same, where each step of the driver's loop in between is one more place for the cancel."""
    steps = await every_attempt(queue, tmp_path, course, stopping=by == "a stop", everybody=True)
    assert steps > 4 * FEWEST_STEPS


@pytest.mark.parametrize("prepare", CALLS.values(), ids=CALLS)
async def test_a_call_cancelled_at_any_step_is_done_or_not_done(queue: Queue, prepare: Prepare) -> None:
    """Whole or not at all, with every connection left as it was; said again it has been done exactly once."""
    for step in count():
        call = await prepare(queue, queue)
        before = await queue.kinds(call.record_id)
        after = before if call.adds is None else [*before, call.adds]
        run = await cancelled_at(step, call.act, everybody=True)
        await check_sessions(queue.database)
        await check_pool(queue.database, POOL)
        done = await queue.kinds(call.record_id)
        assert done in (before, after), f"step {step}: {done}"
        assert run.cancelled or done == after, f"step {step} let the call return, and it is not done"
        await call.act()
        assert await check_history(queue, call.record_id) == after, f"step {step}, said again"
        await release(queue, call.record_id)
        await finish(queue, call.record_id)
        await remove(queue, call.record_id)
        if not run.hit:
            assert step > FEWEST_STEPS
            return

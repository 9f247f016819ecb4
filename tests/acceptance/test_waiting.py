"""Polls that wait, at the real service: woken when there is something new, cheap while there is not."""

from collections.abc import Callable
from uuid import UUID

import pytest
import trio

from tests.acceptance.longpolls import (
    Crowd,
    Statements,
    Waiter,
    descriptors,
    resting_records,
)
from tests.acceptance.rig import Rig
from tests.waiting import until

SHARE, WHOLE = 100, 1000
OF_THE_POOL = 10  # connections to the database come and go by themselves
CHANGE = "UPDATE records SET edition = edition + 1 WHERE id = ANY(%(ids)s)"


async def everybody_waits(crowd: Crowd, ids: list[UUID], seconds: int = 60) -> list[Waiter]:
    """Have somebody wait for each of these records."""
    etags = [await crowd.etag(record_id) for record_id in ids]
    return [await crowd.wait(each, etag, seconds) for each, etag in zip(ids, etags, strict=True)]


async def all_answered(waiters: list[Waiter], status: int = 200) -> None:
    """Wait until all of these have their answers."""
    with trio.fail_after(60):
        for waiter in waiters:
            await waiter.done.wait()
    assert {waiter.status for waiter in waiters} == {status}


@pytest.mark.parametrize("count", [SHARE, pytest.param(WHOLE, marks=pytest.mark.deep)])
async def test_s_i24_those_who_wait_cost_two_statements_a_change_and_nothing_without_one(
    make_rig: Callable[..., Rig], dsn: str, count: int
) -> None:
    """One among many is answered, all are, those whose time is up are; then nothing of them is left."""
    statements = Statements(dsn)
    rig = make_rig(dsn)
    daemon = await trio.to_thread.run_sync(lambda: rig.start(*rig.odd("endless")))
    token = await trio.to_thread.run_sync(rig.account)
    ids = resting_records(rig, count)
    before = descriptors(daemon)
    async with trio.open_nursery() as nursery:
        crowd = Crowd(str(rig.state / "rubezh.sock"), token, nursery)
        waiters = await everybody_waits(crowd, ids)
        await until(lambda: descriptors(daemon) >= before + count, 30)
        await trio.sleep(1.0)  # until all of them have had their first look

        statements.forget()
        rig.ask(CHANGE, ids=ids[:1])
        await all_answered(waiters[:1])
        assert 1 <= statements.of_polls() <= 2
        assert not any(waiter.done.is_set() for waiter in waiters[1:])

        statements.forget()
        rig.ask(CHANGE, ids=ids)
        await all_answered(waiters[1:])
        assert statements.of_polls() <= 4  # they may be heard of in two ticks

        same = [await crowd.wait(ids[0], await crowd.etag(ids[0]), 60) for _ in range(count)]
        await until(lambda: descriptors(daemon) >= before + count, 30)
        await trio.sleep(1.0)
        statements.forget()
        rig.ask(CHANGE, ids=ids[:1])
        await all_answered(same)
        assert statements.of_polls() <= 2

        late = await everybody_waits(crowd, ids, seconds=3)
        await all_answered(late, status=304)

        gone = await everybody_waits(crowd, ids)
        await until(lambda: descriptors(daemon) >= before + count, 30)
        nursery.cancel_scope.cancel()
    assert not any(waiter.done.is_set() for waiter in gone)
    await until(lambda: descriptors(daemon) <= before + OF_THE_POOL, 30)
    assert daemon.entries("request.failed") == []

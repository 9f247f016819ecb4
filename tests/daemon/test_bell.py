"""The bell wakes who waits; polling stays the truth."""

from collections.abc import Callable
from functools import partial
from typing import cast

import pytest
import trio
from structlog.testing import capture_logs

from daemon.bell import CHANNEL, RETRY_SECONDS, Bell
from daemon.systemd import Beats
from storage.database import HEAR_AGAIN_SECONDS, Database
from storage.errors import DatabaseUnavailable
from tests.builders import a_queue, ask


class Ears:
    """A database that hears as the test says."""

    def __init__(self, *, listens: bool = True) -> None:
        self.listens = listens
        self.plan: list[str] = []
        self.asked = 0

    async def hear(self, channel: str, heard: Callable[[str], None], started: Callable[[], None]) -> None:
        """Fail to start, or start and break off, or stay."""
        assert channel == CHANNEL
        self.asked += 1
        await trio.sleep(1)
        step = self.plan.pop(0) if self.plan else "stay"
        if step != "deaf":
            started()
        if step == "stay":
            heard("convert")
            await trio.sleep_forever()
        raise DatabaseUnavailable("gone")


async def test_waiting_ends_with_the_bell_or_the_time(autojump_clock: trio.testing.MockClock) -> None:
    """Whichever comes first."""
    bell = Bell()
    started = trio.current_time()
    await bell.wait(bell.next_ring, 5)
    assert trio.current_time() - started == 5
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bell.wait, bell.next_ring, 1000)
        nursery.start_soon(bell.wait, bell.next_ring, 1000)
        await trio.sleep(1)
        bell.ring()
    assert trio.current_time() - started == 6


async def test_a_ring_during_a_question_is_not_missed(autojump_clock: trio.testing.MockClock) -> None:
    """Who took the next ring before it asked need not wait; the ring after it is another."""
    bell = Bell()
    ring = bell.next_ring
    bell.ring()
    started = trio.current_time()
    await bell.wait(ring, 60)
    assert trio.current_time() == started
    await bell.wait(bell.next_ring, 60)
    assert trio.current_time() == started + 60


async def test_a_silent_bell_is_told_once_and_tried_again(autojump_clock: trio.testing.MockClock) -> None:
    """Once it is silent for long, however long; and what came meanwhile rings when it is heard again."""
    told: list[str] = []
    bell, ears = Bell(told.append), Ears()
    ears.plan = ["deaf"] * 20 + ["break off"] + ["deaf"] * 15
    rings = 0

    async def count() -> None:
        nonlocal rings
        while True:
            await bell.next_ring.wait()
            rings += 1

    with capture_logs() as entries:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            nursery.start_soon(bell.listen, cast("Database", ears))
            await trio.sleep(37 * (RETRY_SECONDS + 1))
            nursery.cancel_scope.cancel()
    assert [(entry["event"], entry["log_level"]) for entry in entries] == [("bell.silent", "warning")] * 2
    assert ears.asked == 37
    assert rings == 2, "once for each time it was heard again; what is heard at once is one ring"
    assert told == ["convert"], "whoever wants to know is told the lane"


async def test_a_short_silence_and_an_outage_told_elsewhere_are_not_told(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The one heals by itself, the other has its own line; what outlasts the outage is told."""
    away = True
    bell, ears = Bell(is_away=lambda: away), Ears()
    ears.plan = ["deaf"] * 20 + ["break off"] + ["deaf"] * 5 + ["break off"] + ["deaf"] * 20
    with capture_logs() as entries:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bell.listen, cast("Database", ears))
            await trio.sleep(27 * (RETRY_SECONDS + 1))
            assert entries == []
            away = False
            await trio.sleep(15 * (RETRY_SECONDS + 1))
            nursery.cancel_scope.cancel()
    assert [entry["event"] for entry in entries] == ["bell.silent"]


async def test_it_promises_to_be_heard_from_again(autojump_clock: trio.testing.MockClock) -> None:
    """While it hears and while it is deaf; so whoever listens to the promises knows that it lives."""
    beats = Beats()
    bell, ears = Bell(promise=partial(beats.promise, "bell")), Ears()
    ears.plan = ["deaf"] * 3
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bell.listen, cast("Database", ears))
        await trio.sleep(4 * (RETRY_SECONDS + 1))
        assert beats.silent() == frozenset()
        await trio.sleep(HEAR_AGAIN_SECONDS + 1)
        assert beats.silent() == {"bell"}, "these ears say nothing of themselves again"
        nursery.cancel_scope.cancel()


async def test_where_nothing_can_be_heard_nobody_listens() -> None:
    """Behind a pooler: polling alone, and no line about it."""
    ears = Ears(listens=False)
    with capture_logs() as entries:
        await Bell().listen(cast("Database", ears))
    assert (ears.asked, entries) == (0, [])


async def test_notify_rings(database: Database) -> None:
    """A real NOTIFY from another connection is a ring; so is a record that becomes ready."""
    told: list[str] = []
    bell = Bell(told.append)
    queue = await a_queue(database)
    async with trio.open_nursery() as nursery:
        first = bell.next_ring
        nursery.start_soon(bell.listen, database)
        with trio.fail_after(10):
            await first.wait()  # it listens: whatever came before is looked for
            ring = bell.next_ring
            await ask(database, f"NOTIFY {CHANNEL}")
            await ring.wait()
            await queue.record()
            claim = await queue.claim()
            ring = bell.next_ring
            await queue.claims.give_back(claim.token, "test")
            await ring.wait()
            assert told[-1].startswith("convert")
        nursery.cancel_scope.cancel()


async def test_a_bell_is_heard_again_after_its_connection_was_killed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the listening session: a new one is made, and nothing is said."""
    monkeypatch.setattr("daemon.bell.RETRY_SECONDS", 0.05)
    bell = Bell()
    kill = """SELECT count(pg_terminate_backend(pid)) AS killed FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'LISTEN%%'"""
    with capture_logs() as entries:
        async with trio.open_nursery() as nursery:
            ring = bell.next_ring
            nursery.start_soon(bell.listen, database)
            with trio.fail_after(10):
                await ring.wait()
                ring = bell.next_ring
                assert (await ask(database, kill)) == [{"killed": 1}]
                await ring.wait()
            nursery.cancel_scope.cancel()
    assert [entry["event"] for entry in entries] == [], "it was silent for a moment only"

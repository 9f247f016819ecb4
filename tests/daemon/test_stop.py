"""How the service is asked to stop, and what follows in what time."""

import os
import signal
from collections.abc import Callable

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from daemon.settings import WorkSettings
from daemon.stop import MARGIN_SECONDS, POSTGRES_SECONDS, Stop, exit_budget

WORK = WorkSettings(grace_seconds=5.0, exit_seconds=10.0)


def test_the_budget_is_the_sum_of_what_may_be_waited_for() -> None:
    """The unit file allows this much."""
    assert exit_budget(WORK) == 15.0 + POSTGRES_SECONDS + MARGIN_SECONDS


async def ends_at(stop: Stop, *asked_at: float) -> float:
    """Return when the work is cancelled, for requests at these moments."""
    started = trio.current_time()
    async with trio.open_nursery() as support:
        work = trio.CancelScope()
        support.start_soon(stop.end_work, work, 5.0)

        async def ask() -> None:
            for moment in asked_at:
                await trio.sleep_until(started + moment)
                stop.ask("test")

        support.start_soon(ask)
        with work:
            await trio.sleep_forever()
    return trio.current_time() - started


async def test_the_work_has_its_grace(autojump_clock: trio.testing.MockClock) -> None:
    """One request: the cancel comes when the grace is over."""
    with capture_logs() as entries:
        assert await ends_at(Stop(), 1.0) == 6.0
    assert [entry["event"] for entry in entries] == ["service.stopping"]


async def test_a_second_request_ends_the_grace(autojump_clock: trio.testing.MockClock) -> None:
    """At once, and told once; a third is no news."""
    stop = Stop()
    with capture_logs() as entries:
        assert await ends_at(stop, 1.0, 2.5) == 2.5
        stop.ask("again")
    assert [entry["event"] for entry in entries] == ["service.stopping", "service.second_signal"]


async def test_a_stop_is_asked_for_once_and_for_all(autojump_clock: trio.testing.MockClock) -> None:
    """Who waits for it is woken, and who looks sees it."""
    stop = Stop()
    seen = [stop.asked]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop.wait)
        await trio.sleep(1)
        stop.ask("test")
    seen.append(stop.asked)
    assert seen == [False, True]
    await stop.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signals_are_requests(number: signal.Signals) -> None:
    """Both ways of a service owner to say it; the reason is the signal's name."""
    stop = Stop()
    with capture_logs() as entries:
        async with trio.open_nursery() as nursery:
            await nursery.start(stop.hear_signals)
            os.kill(os.getpid(), number)
            with trio.fail_after(5):
                await stop.wait()
            nursery.cancel_scope.cancel()
    assert [(entry["event"], entry["why"]) for entry in entries] == [("service.stopping", number.name)]


class EndedError(BaseException):
    """Stands for the end of the process."""


async def end_hard(owe: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the time of a stop run out; return the log and the exit, in order."""
    seen: list[str] = []

    def leave(code: int) -> None:
        seen.append(f"exit {code} at {trio.current_time() - started:g}")
        raise EndedError

    monkeypatch.setattr(os, "_exit", leave)
    stop, started = Stop(), trio.current_time()
    with capture_logs() as entries, pytest.RaisesGroup(EndedError):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop.end_hard, WORK, owe)
            await trio.sleep(1000)
            stop.ask("test")
            with trio.CancelScope(shield=True):
                await trio.sleep(WORK.grace_seconds + WORK.exit_seconds - 1)
                assert seen == []
                await trio.sleep(2)
    return [entry["event"] for entry in entries] + seen


async def test_when_time_is_up_what_is_owed_is_written_and_the_process_ends(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before the grace and the exit's time are over, and with a line."""
    owed: list[float] = []
    seen = await end_hard(lambda: owed.append(trio.current_time()), monkeypatch)
    assert len(owed) == 1
    assert seen == ["service.stopping", "service.ended_hard", "exit 1 at 1015"]


async def test_the_process_ends_also_when_what_is_owed_cannot_be_written(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk must not keep a process that nothing else ends."""

    def owe() -> None:
        raise OSError("no space left")

    seen = await end_hard(owe, monkeypatch)
    assert seen == ["service.stopping", "give_back.unwritten", "service.ended_hard", "exit 1 at 1015"]

"""How the service ends: a stop is asked for, the work has a grace, then it is cancelled, then time is up.

The exit formula, in seconds from the first signal (`exit_budget`)::

    grace            attempts may still come to an outcome; nothing new is claimed
  + exit             they are cancelled and given back; the doors and the pool close
  + POSTGRES         our own PostgreSQL ends (skipped when time ran out before)
  + MARGIN           the interpreter's own end

When `grace + exit` is over with something still undone, what is owed is written and the process ends hard:
a driver that waits for a dead server must not keep us.

A crash has the exit's time too: what cannot be settled within it is left to its lease, and stays counted.
"""

import math
import os
import signal
from collections.abc import Callable

import structlog
import trio

from daemon import systemd
from daemon.journal import say_last_words
from daemon.settings import WorkSettings

log = structlog.get_logger()

POSTGRES_SECONDS = 36.0
MARGIN_SECONDS = 4.0


def exit_budget(work: WorkSettings) -> float:
    """Return the seconds a service manager must allow from its stop signal to the end of the process."""
    return work.grace_seconds + work.exit_seconds + POSTGRES_SECONDS + MARGIN_SECONDS


class Stop:
    """Whether a stop was asked for, and whether it is urgent."""

    def __init__(self) -> None:
        """Begin with nobody having asked."""
        self._asked = trio.Event()
        self._hurried = trio.Event()
        self.crash_ends_at = math.inf
        """By Trio's clock: when a service that crashed waits for its database no longer."""

    @property
    def asked(self) -> bool:
        """True from the first request on: nothing is claimed or accepted any more."""
        return self._asked.is_set()

    def ask(self, why: str) -> None:
        """Ask for the stop; asking again ends the grace at once."""
        if self.asked:
            if not self._hurried.is_set():
                log.info("service.second_signal", why=why)
            self._hurried.set()
            return
        log.info("service.stopping", why=why)
        systemd.stopping("giving back what runs")
        self._asked.set()

    async def wait(self) -> None:
        """Wait until a stop is asked for."""
        await self._asked.wait()

    async def notice_crash(self, exit_seconds: float) -> None:
        """Wait to be cancelled: where nobody asked for a stop, that is a crash, and its time begins."""
        try:
            await trio.sleep_forever()
        finally:
            if not self.asked:
                self.crash_ends_at = trio.current_time() + exit_seconds

    async def hear_signals(
        self, *others: signal.Signals, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Turn SIGTERM, SIGINT and the `others` into requests, for ever."""
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, *others) as signals:
            task_status.started()
            async for number in signals:
                self.ask(signal.Signals(number).name)

    async def end_work(self, work: trio.CancelScope, grace_seconds: float) -> None:
        """Once a stop is asked for, let the work end by itself for the grace, then cancel it."""
        await self.wait()
        with trio.move_on_after(grace_seconds):
            await self._hurried.wait()
        work.cancel(reason="the service stops")

    async def end_hard(self, work: WorkSettings, owe: Callable[[], None]) -> None:
        """Once a stop was asked for and its time is over, write what is owed and end the process."""
        await self.wait()
        await trio.sleep(work.grace_seconds + work.exit_seconds)
        try:
            owe()
        except Exception:  # told, and the process ends whatever it is
            log.exception("give_back.unwritten")
        log.error("service.ended_hard", after_seconds=work.grace_seconds + work.exit_seconds)
        say_last_words()
        os._exit(1)

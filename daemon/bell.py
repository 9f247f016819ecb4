"""The bell: NOTIFY turned into wake-ups. A hint only; polling stays the truth."""

import math
from collections.abc import Callable

import structlog
import trio

from storage.database import HEAR_AGAIN_SECONDS, Database
from storage.errors import DatabaseUnavailable

log = structlog.get_logger()

CHANNEL = "rubezh_ready"
RETRY_SECONDS = 5.0
TOLD_AFTER_SECONDS = 60.0  # by then a database that is away has been noticed by those who ask it


class Bell:
    """Wakes whoever waits for work."""

    def __init__(
        self,
        heard: Callable[[str], None] = lambda _: None,
        is_away: Callable[[], bool] = lambda: False,
        promise: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Begin silent; `heard` is given what each notification says, before it rings.

        `is_away` says whether the database is known to be away, which is told elsewhere. `promise` is told,
        again and again, within how many seconds it will be told next.
        """
        self._promise = promise
        self._heard = heard
        self._is_away = is_away
        self._rung = trio.Event()

    @property
    def next_ring(self) -> trio.Event:
        """What the next ring will set; whoever takes it before a question misses no ring during that."""
        return self._rung

    def ring(self) -> None:
        """Wake everybody who waits now."""
        self._rung.set()
        self._rung = trio.Event()

    async def wait(self, ring: trio.Event, seconds: float) -> None:
        """Wait for that ring, at most so long."""
        with trio.move_on_after(seconds):
            await ring.wait()

    async def listen(self, database: Database) -> None:
        """Ring for every notification, for ever; a long silence is told once, and tried to end all along."""
        if not database.listens:
            return
        silent_since, told = trio.current_time(), False

        def ring(what: str) -> None:
            self._heard(what)
            self.ring()

        def heard_again() -> None:
            nonlocal silent_since, told
            if silent_since < math.inf:
                self.ring()  # what came meanwhile was not heard
            silent_since, told = math.inf, False
            self._promise(HEAR_AGAIN_SECONDS)

        while True:
            self._promise(0.0)
            try:
                await database.hear(CHANNEL, ring, heard_again)
            except DatabaseUnavailable as error:
                silent_since = min(silent_since, trio.current_time())
                long = trio.current_time() - silent_since >= TOLD_AFTER_SECONDS
                if long and not told and not self._is_away():
                    log.warning("bell.silent", reason=str(error))
                    told = True
            self._promise(RETRY_SECONDS)
            await trio.sleep(RETRY_SECONDS)

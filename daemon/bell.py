"""The bell: NOTIFY turned into wake-ups. A hint only; polling stays the truth."""

from collections.abc import Callable

import structlog
import trio

from storage.database import Database
from storage.errors import DatabaseUnavailable

log = structlog.get_logger()

CHANNEL = "rubezh_ready"
RETRY_SECONDS = 5.0


class Bell:
    """Wakes whoever waits for work."""

    def __init__(self, heard: Callable[[str], None] = lambda _: None) -> None:
        """Begin silent; `heard` is given what each notification says, before it rings."""
        self._heard = heard
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
        """Ring for every notification, for ever; told once when none can arrive, and tried again."""
        if not database.listens:
            return
        silent = False

        def ring(told: str) -> None:
            self._heard(told)
            self.ring()

        def heard_again() -> None:
            nonlocal silent
            silent = False
            self.ring()  # what came meanwhile was not heard

        while True:
            try:
                await database.hear(CHANNEL, ring, heard_again)
            except DatabaseUnavailable as error:
                if not silent:
                    log.warning("bell.silent", reason=str(error))
                silent = True
            await trio.sleep(RETRY_SECONDS)

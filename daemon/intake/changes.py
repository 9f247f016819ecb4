"""Who waits for a record to change, and how they hear of it: one listener for all, woken by the record's id.

A notification is a hint like the bell's: whoever is woken reads, and where none can arrive everybody is woken
every few seconds to look. A wait that nobody ends ends by its own time.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from uuid import UUID

import trio

from storage.database import Database
from storage.errors import DatabaseUnavailable

CHANNEL = "rubezh_changed"
MOST_WAITING = 2000  # half of the connections that are served at all
RETRY_SECONDS = 5.0
TICK_SECONDS = 0.01  # what is heard within it wakes everybody at once, and they ask together
LOOK_SECONDS = 2.0  # between two looks of those who wait, while notifications do not arrive


class Watch:
    """One record that somebody waits for."""

    def __init__(self) -> None:
        """Begin with nothing changed."""
        self.watchers = 0
        self._changed = trio.Event()

    @property
    def next_change(self) -> trio.Event:
        """What the next change will set; whoever takes it before a look misses no change during that."""
        return self._changed

    def stir(self) -> None:
        """Wake everybody who waits now."""
        self._changed.set()
        self._changed = trio.Event()


class Changes:
    """Everybody who waits, by the record."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        """Begin with nobody, and deaf: see `listen`."""
        self._watches: dict[UUID, Watch] = {}
        self._groups: dict[UUID, set[Watch]] = {}
        self.most = most
        self.hears = False
        self._is_over = False
        self._heard: set[UUID] = set()
        self._ticking = trio.Event()
        self.waiting = 0

    @property
    def longest_trust(self) -> float:
        """How long one may wait for a notification before one looks by oneself."""
        return float("inf") if self.hears else LOOK_SECONDS

    @contextmanager
    def watching(self, record_id: UUID) -> Iterator[Watch | None]:
        """Wait for a record in the block; None when as many wait as may, or nobody may any more."""
        if self.waiting >= self.most or self._is_over:
            yield None
            return
        watch = self._watches.setdefault(record_id, Watch())
        watch.watchers += 1
        self.waiting += 1
        try:
            yield watch
        finally:
            self.waiting -= 1
            watch.watchers -= 1
            if not watch.watchers:
                del self._watches[record_id]

    @contextmanager
    def watching_any(self, ids: Collection[UUID]) -> Iterator[Watch | None]:
        """Wait for the next of several records in the block, as one; None as `watching` has it."""
        if self.waiting >= self.most or self._is_over:
            yield None
            return
        watch = Watch()
        for record_id in ids:
            self._groups.setdefault(record_id, set()).add(watch)
        self.waiting += 1
        try:
            yield watch
        finally:
            self.waiting -= 1
            for record_id in ids:
                self._groups[record_id].discard(watch)
                if not self._groups[record_id]:
                    del self._groups[record_id]

    @property
    def is_over(self) -> bool:
        """Whether nobody is to wait any more."""
        return self._is_over

    def let_go(self) -> None:
        """Let everybody have an answer now: the service stops."""
        self._is_over = True
        self._stir_all()

    def hear(self, told: str) -> None:
        """Have those who wait for the record that a notification names woken at the next tick."""
        try:
            record_id = UUID(told)
        except ValueError:
            return  # anybody who may connect to the database may say anything on a channel
        if record_id in self._watches or record_id in self._groups:
            self._heard.add(record_id)
            self._ticking.set()

    async def listen(self, database: Database) -> None:
        """Hear of every change, for ever; what went unheard meanwhile is looked for."""
        if not database.listens:
            return

        def heard_again() -> None:
            if not self.hears:
                self.hears = True
                self._stir_all()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tick)
            while True:
                try:
                    await database.hear(CHANNEL, self.hear, heard_again)
                except DatabaseUnavailable:
                    self.hears = False  # the bell has lost its connection to the same database, and tells
                self._stir_all()
                await trio.sleep(RETRY_SECONDS)

    async def _tick(self) -> None:
        while True:
            await self._ticking.wait()
            await trio.sleep(TICK_SECONDS)
            self._ticking = trio.Event()
            heard, self._heard = self._heard, set()
            for record_id in heard & self._watches.keys():
                self._watches[record_id].stir()
            for watch in {each for record_id in heard for each in self._groups.get(record_id, ())}:
                watch.stir()

    def _stir_all(self) -> None:
        for watch in {*self._watches.values(), *(each for group in self._groups.values() for each in group)}:
            watch.stir()

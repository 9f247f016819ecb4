"""Between those who say something and the sink that takes it: an outlet never waits and never loses unsaid.

What the sink cannot take just now is kept, in order and within bounds, until it can; what the bounds or the
sink refuse is dropped, counted, and told where it would have stood.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Protocol

MOST_ENTRIES: Final = 1000
MOST_BYTES: Final = 4 * 2**20


class Answer(Enum):
    """What a sink says to an entry."""

    TAKEN = auto()
    LATER = auto()  # it is full, or away: the same entry may be taken soon
    NEVER = auto()  # it is closed, or refuses this very entry


class Sink(Protocol):
    """Where rendered entries go; nothing here may wait."""

    def send(self, entry: bytes) -> Answer:
        """Take one entry, or not."""

    def push(self) -> bool:
        """Carry on with an entry that was taken in part; True when nothing of it is left."""


class Outlet:
    """What structlog takes for a logger: hands entries on, `tell_dropped` renders the report of a loss."""

    def __init__(self, sink: Sink, tell_dropped: Callable[[int], bytes]) -> None:
        self._sink = sink
        self._tell_dropped = tell_dropped
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._dropped = 0  # and not told yet
        self.dropped_in_all = 0

    def say(self, entry: bytes) -> None:
        """Hand an entry on, or keep it for later, or drop it."""
        answer = self._sink.send(entry) if self.push() else Answer.LATER
        if answer is Answer.LATER and self._has_room(entry):
            self._waiting.append(entry)
            self._bytes += len(entry)
        elif answer is not Answer.TAKEN:
            self._drop()

    debug = info = warning = error = critical = say

    def push(self) -> bool:
        """Hand on what waits, and then the report of what was dropped; True when nothing is left to tell."""
        while self._waiting:
            answer = self._sink.send(self._waiting[0])
            if answer is Answer.LATER:
                return False
            self._bytes -= len(self._waiting.popleft())
            if answer is Answer.NEVER:
                self._drop()
        if self._dropped:
            if self._sink.send(self._tell_dropped(self._dropped)) is not Answer.TAKEN:
                return False
            self._dropped = 0
        return self._sink.push()

    def _drop(self) -> None:
        self._dropped += 1
        self.dropped_in_all += 1

    def _has_room(self, entry: bytes) -> bool:
        """Once something is dropped nothing more is kept: the report must stand where the loss is."""
        return (
            not self._dropped and len(self._waiting) < MOST_ENTRIES and self._bytes + len(entry) <= MOST_BYTES
        )

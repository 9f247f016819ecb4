"""When a server ends, bodies that still come are waited for a moment more, and then no longer."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio

LAST_CALL = "rubezh.last_call"
"""Where a request's scope has the `LastCall` of its server."""


class LastCall:
    """Until when a server reads bodies: for ever, until it announces its end."""

    def __init__(self) -> None:
        """Begin with no end in sight."""
        self._at = math.inf
        self._waits: set[trio.CancelScope] = set()

    def announce(self, seconds: float) -> None:
        """Have all waits end in so many seconds, those which begin by then included."""
        self._at = trio.current_time() + seconds
        for wait in self._waits:
            wait.deadline = self._at

    @contextmanager
    def waiting(self) -> Iterator[trio.CancelScope]:
        """Wait for a part of a body in here; it was in vain where the scope `cancelled_caught`."""
        with trio.CancelScope(deadline=self._at) as wait:
            if trio.current_time() >= self._at:
                wait.cancel()  # by itself it would come too late for what need not be waited for
            self._waits.add(wait)
            try:
                yield wait
            finally:
                self._waits.discard(wait)

"""Waits for what happens in its own time in another process, thread or connection."""

import inspect
import time
from collections.abc import Awaitable, Callable

import trio


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 10.0) -> None:
    """Return as soon as `condition` holds; fails when it does not within `seconds`."""
    with trio.fail_after(seconds):
        while True:
            holds = condition()
            if await holds if inspect.isawaitable(holds) else holds:
                return
            await trio.sleep(0.01)


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Do the same outside of Trio, for what takes its time."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"it did not come true within {seconds:g} s"
        time.sleep(0.1)

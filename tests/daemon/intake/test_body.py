"""A body as it arrives."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from starlette.requests import ClientDisconnect, Request
from trio.testing import MockClock

from daemon.intake.body import LEAST_BYTES, PATIENCE_SECONDS, Body
from daemon.intake.problems import Problem


def body_of(parts: Sequence[tuple[float, bytes]], *, ends: bool = True) -> Body:
    """Return a body whose parts come after so many seconds each."""
    coming = iter(parts)

    async def receive() -> dict[str, Any]:
        part = next(coming, None)
        if part is None:
            await trio.lowlevel.checkpoint()
            return {"type": "http.request" if ends else "http.disconnect", "more_body": False}
        await trio.sleep(part[0])
        return {"type": "http.request", "body": part[1], "more_body": True}

    return Body(Request({"type": "http", "headers": []}, receive), most=10**9)


async def read_whole(body: Body) -> int:
    """Read to the end; return the size."""
    size = 0
    while chunk := await body.read():
        size += len(chunk)
    assert size == body.size
    return size


async def test_a_slow_sender_is_served(autojump_clock: MockClock) -> None:
    """A kilobyte a second, for hours."""
    assert await read_whole(body_of([(1, b"x" * 1024)] * 10_000)) == 10_240_000


@pytest.mark.parametrize("part", [b"", b"x"])
async def test_one_that_gives_next_to_nothing_is_not_waited_for(
    autojump_clock: MockClock, part: bytes
) -> None:
    """Silence and a byte now and then end alike, after the same patience."""
    began = trio.current_time()
    with pytest.raises(Problem) as problem:
        await read_whole(body_of([(5, part)] * 1000))
    assert (problem.value.status, problem.value.code) == (408, "too_slow")
    assert trio.current_time() - began == pytest.approx(PATIENCE_SECONDS)


async def test_our_own_slowness_is_not_the_sender_s(autojump_clock: MockClock) -> None:
    """The patience runs only while we wait for the sender."""
    body = body_of([(0, b"x" * (LEAST_BYTES // 4))] * 100)
    for _ in range(100):
        assert await body.read()
        await trio.sleep(PATIENCE_SECONDS)
    assert body.size == 25 * LEAST_BYTES


async def test_a_sender_that_goes_away_is_told_apart() -> None:
    """From one whose body ended."""
    with pytest.raises(ClientDisconnect):
        await read_whole(body_of([(0, b"x")], ends=False))

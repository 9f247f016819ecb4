"""What the service is doing, in one sentence: the line that `systemctl status` shows."""

from collections.abc import Callable, Iterable

import trio

from daemon import systemd
from daemon.stop import Stop
from storage.daemons import LaneSign

LOOK_SECONDS = 1.0


def sentence_of(lanes: Iterable[LaneSign], *, away: bool) -> str:
    """Say what is at work, and what is missing."""
    signs = list(lanes)
    busy = [f"{sign.name} {sign.busy} of {sign.slots}" for sign in signs if sign.busy]
    closed = [f"{sign.name} is closed: {sign.closed_because}" for sign in signs if sign.closed_because]
    doing = f"at work: {', '.join(busy)}" if busy else "waiting for recordings"
    return "; ".join([*(["the database is away"] if away else []), *closed, doing])


async def tell_status(sentence: Callable[[], str], stop: Stop) -> None:
    """Keep the line up to date, until a stop is asked for: that has a line of its own."""
    told = ""
    while not stop.asked:
        now = sentence()
        if now != told:
            systemd.status(now)
            told = now
        await trio.sleep(LOOK_SECONDS)

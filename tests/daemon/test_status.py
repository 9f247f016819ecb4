"""The line of `systemctl status`."""

import pytest
import trio.testing

from daemon.status import sentence_of, tell_status
from daemon.stop import Stop
from storage.daemons import LaneSign


def lane(name: str, busy: int = 0, closed: str | None = None) -> LaneSign:
    """Return a lane with two slots."""
    return LaneSign(name=name, slots=2, busy=busy, closed_because=closed)


@pytest.mark.parametrize(
    ("lanes", "away", "sentence"),
    [
        ([lane("convert"), lane("whisper")], False, "waiting for recordings"),
        ([lane("convert", 1), lane("whisper", 2)], False, "at work: convert 1 of 2, whisper 2 of 2"),
        (
            [lane("convert", 1), lane("whisper", 0, "the model is away")],
            True,
            "the database is away; whisper is closed: the model is away; at work: convert 1 of 2",
        ),
    ],
)
def test_it_says_what_is_at_work_and_what_is_missing(
    lanes: list[LaneSign],
    away: bool,  # noqa: FBT001 - pytest passes by name
    sentence: str,
) -> None:
    """First what asks for a person."""
    assert sentence_of(lanes, away=away) == sentence


async def test_it_is_told_when_it_changes_until_a_stop_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """The stop has a line of its own, which must stay."""
    told: list[str] = []
    monkeypatch.setattr("daemon.systemd.status", told.append)
    now, stop = "one", Stop()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tell_status, lambda: now, stop)
        await trio.sleep(10)
        now = "two"
        await trio.sleep(10)
        stop.ask("a test")
        now = "three"
    assert told == ["one", "two"]

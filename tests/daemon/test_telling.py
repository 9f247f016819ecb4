"""How each of the seven ends is told: one entry at most, at the right level, and the facts of its event."""

from typing import get_args

import pytest
from structlog.testing import capture_logs

from daemon.metrics import Mark
from daemon.telling import MARKS, facts_of, tell
from storage.claim import ClaimLost
from storage.claims import Settled
from storage.ending import Deferred, Ending, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.record import Milestone, StopCode
from tests.builders import advance, conversion
from tests.daemon.assembly import Told
from tests.stages.nouns import a_record

STAGE = Told(takes=Milestone.CREATED)


@pytest.mark.parametrize(
    ("ending", "stopped", "told"),
    [
        (Reached(conversion()), None, ("record.reached", "info", {"reached": "converted"})),
        (Deferred(3.0, advance(), "half"), None, ("record.deferred", "debug", {"state": "half"})),
        (
            Deferred(3.0, advance(), "half"),
            StopCode.OVERDUE,
            ("record.stopped", "error", {"code": "overdue"}),
        ),
        (
            Hopeless(StopCode.NO_AUDIO, "no track"),
            StopCode.NO_AUDIO,
            ("record.stopped", "error", {"code": "no_audio", "reason": "no track"}),
        ),
        (TimedOut("too long"), None, ("record.timed_out", "warning", {"reason": "too long", "failures": 1})),
        (GivenBack("stop"), None, ("record.given_back", "info", {"reason": "stop"})),
        (Failed("told where it was found"), None, None),
        (ClaimLost(), None, None),
    ],
)
def test_each_end_is_told_once(
    ending: Ending, stopped: StopCode | None, told: tuple[str, str, dict[str, object]] | None
) -> None:
    """Failures and lost claims were told before; work that goes well is no news above DEBUG."""
    with capture_logs() as entries:
        tell(ending, Settled(stopped=stopped), STAGE, a_record())
    if told is None:
        assert entries == []
        return
    [entry] = entries
    event, level, facts = told
    assert (entry["event"], entry["log_level"]) == (event, level)
    assert facts.items() <= entry.items()


@pytest.mark.parametrize(("state", "said"), [("half", "half"), ("", "nothing")])
def test_an_overdue_record_is_stopped_with_a_reason(state: str, said: str) -> None:
    """The owner's log has more than what the operation last said."""
    with capture_logs() as entries:
        tell(Deferred(1.0, advance(), state), Settled(stopped=StopCode.OVERDUE), STAGE, a_record())
    expected = f"still in progress after the time it may take; it last said: {said}"
    assert entries[0]["reason"] == expected


def test_each_end_has_a_mark_of_its_own() -> None:
    """Seven ends, seven marks."""
    assert set(MARKS) == set(get_args(Ending))
    assert sorted(MARKS.values()) == sorted(Mark)


@pytest.mark.parametrize(
    ("ending", "facts"),
    [
        (Reached(conversion()), {}),
        (Deferred(3.0, advance(), "half"), {"delay": 3.0, "state": "half"}),
        (Hopeless(StopCode.NO_AUDIO, "no track"), {}),
        (Failed("a"), {"cause": "a"}),
        (TimedOut("b"), {"cause": "b"}),
        (GivenBack("c"), {"cause": "c"}),
        (ClaimLost(), {}),
    ],
)
def test_the_event_keeps_what_ended_the_attempt(ending: Ending, facts: dict[str, object]) -> None:
    """Always the stage and its seconds; the cause where there is one."""
    assert facts_of(ending, STAGE, 1.23456) == {"stage": "from_created", "seconds": 1.235, **facts}

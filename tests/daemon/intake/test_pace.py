"""When to ask again."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.intake.pace import LATEST, SOONEST, ask_again_seconds, speed
from storage.readiness import Readiness
from storage.record import Milestone, Stop, StopCode

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STOP = Stop(code=StopCode.SILENT, reason="", at=NOON, by="x")


def a_readiness(**changes: Any) -> Readiness:
    """Return a record of an hour that is being recognised, half of it done at four times its own length."""
    given: dict[str, Any] = {
        **{name: uuid4() for name in ("id", "owner_id", "store_id")},
        "milestone": Milestone.TRANSCRIBE,
        "milestone_since": NOON,
        "created_at": NOON,
        "failures": 1,
        "edition": 1,
        "stop": None,
        **dict.fromkeys(("title", "description", "filename"), ""),
        **dict.fromkeys(("topics", "audio_warnings"), ()),
        **dict.fromkeys(("asked_language", "found_language", "recogniser", "audio_path", "text")),
        "declared_seconds": None,
        "decoded_seconds": 3600.0,
        "recognised_seconds": 1800.0,
        "translate": False,
        "corrections": 0,
        "left_name": "",
        "right_name": "",
        "gaps": 0,
        "gap_seconds": 0.0,
        "is_silent": False,
        "milestone_seconds": 450.0,
        "held_seconds": 0.0,
        "wakes_in": 0.0,
        "queue_position": None,
    }
    return Readiness(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({"milestone": Milestone.DONE}, None),
        ({"stop": STOP}, None),
        ({}, LATEST),  # 450 s of work are left
        ({"recognised_seconds": 3480.0, "milestone_seconds": 870.0}, 30),
        ({"recognised_seconds": 3480.0, "milestone_seconds": 870.0, "held_seconds": 20.0}, 10),
        ({"recognised_seconds": 3480.0, "milestone_seconds": 348.0}, 12),  # the same, faster
        ({"recognised_seconds": 3480.0, "milestone_seconds": 348.0, "held_seconds": 500.0}, 50),
        ({"recognised_seconds": 0.0, "milestone_seconds": 0.0, "decoded_seconds": 100.0}, 20),
        ({"milestone": Milestone.CREATED, "decoded_seconds": None}, 1),
        ({"held_seconds": None, "wakes_in": 20.2}, 21),
        ({"held_seconds": None, "wakes_in": 3600.0}, LATEST),
        ({"held_seconds": None, "queue_position": 1}, 1),
        ({"held_seconds": None, "queue_position": 12}, 12),
        ({"held_seconds": None, "queue_position": 1001}, 30),
    ],
)
def test_when_there_should_be_something_new(changes: dict[str, Any], seconds: int | None) -> None:
    """From what is left and the record's own speed; later and later where that was wrong."""
    assert ask_again_seconds(a_readiness(**changes)) == seconds


@given(
    milestone=st.sampled_from([each for each in Milestone if each is not Milestone.DONE]),
    decoded_seconds=st.one_of(st.none(), st.floats(-1e9, 1e9)),
    recognised_seconds=st.floats(0, 1e9),
    milestone_seconds=st.floats(0, 1e9),
    held_seconds=st.one_of(st.none(), st.floats(0, 1e9)),
    wakes_in=st.floats(0, 1e9),
    queue_position=st.one_of(st.none(), st.integers(1, 1001)),
)
def test_nobody_is_told_to_hammer_or_to_forget(**changes: Any) -> None:
    """Whatever is known of a record, the answer is between the bounds."""
    seconds = ask_again_seconds(a_readiness(**changes))
    assert seconds is not None
    assert SOONEST <= seconds <= LATEST


@given(st.floats(1, 1e5), st.floats(1, 1e5))
def test_what_goes_faster_is_asked_for_no_later(one: float, other: float) -> None:
    """Of two records that differ in nothing but the time their text has taken."""
    faster, slower = sorted((one, other))
    waits = [ask_again_seconds(a_readiness(milestone_seconds=each)) for each in (faster, slower)]
    assert waits == sorted(waits, key=lambda wait: wait or 0)


def test_a_speed_is_told_once_it_is_known() -> None:
    """Not before any text is there."""
    assert speed(a_readiness()) == 4.0
    assert speed(a_readiness(recognised_seconds=0.0)) is None
    assert speed(a_readiness(milestone=Milestone.CONVERTED)) is None

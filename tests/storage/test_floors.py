"""Floors: a claim begins where nothing can be before; what becomes ready below is found soon."""

from datetime import timedelta
from uuid import uuid4

import pytest

from storage.floors import BOTTOM, IDLE_LOOKS, LATE_SECONDS, LOOK_SECONDS, WAKE_SECONDS, Floors
from tests.builders import NOON

LATER = NOON + timedelta(hours=1)


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """Return its time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock at zero."""
    return Clock()


@pytest.fixture
def floors(clock: Clock) -> Floors:
    """Return floors whose first look at everything is over."""
    made = Floors(clock)
    with made.asking(["convert", "whisper"]) as start:
        assert start.floors == [BOTTOM, BOTTOM]
    return made


def test_the_floor_rises_to_what_was_claimed(floors: Floors) -> None:
    """The lanes that were asked for have nothing before it; another lane keeps its floor."""
    with floors.asking(["convert"]):
        pass
    floors.rise(NOON)
    with floors.asking(["convert", "whisper"]) as start:
        assert start.floors == [NOON, BOTTOM]


def test_the_floor_falls_to_what_becomes_ready_below_it(floors: Floors) -> None:
    """And not to what becomes ready above it."""
    with floors.asking(["convert"]):
        pass
    floors.rise(LATER)
    floors.fall("convert", LATER + timedelta(hours=1))
    with floors.asking(["convert"]) as start:
        assert start.floors == [LATER]
    floors.fall("convert", NOON)
    with floors.asking(["convert"]) as start:
        assert start.floors == [NOON]


def test_what_falls_during_a_claim_is_not_passed_over(floors: Floors) -> None:
    """A record that became ready after the question and before its answer keeps the floor down."""
    with floors.asking(["convert"]):
        floors.fall("convert", NOON)
    floors.rise(LATER)
    with floors.asking(["convert"]) as start:
        assert start.floors == [NOON]


def test_a_look_at_everything_comes_every_second(floors: Floors, clock: Clock) -> None:
    """Whatever went unheard is found by it."""
    with floors.asking(["convert"]):
        pass
    floors.rise(NOON)
    floors.woken(NOON)
    clock.now += LOOK_SECONDS
    with floors.asking(["convert"]) as start:
        assert (start.floors, start.wake_from) == ([BOTTOM], BOTTOM)
    with floors.asking(["convert"]) as start:
        assert start.floors == [NOON]
        assert start.wake_from == NOON - timedelta(seconds=LATE_SECONDS)


def test_a_look_that_takes_long_comes_less_often(floors: Floors, clock: Clock) -> None:
    """It never takes more than a small share of the time."""
    clock.now += LOOK_SECONDS
    with floors.asking(["convert"]):
        clock.now += 1.0
    floors.rise(NOON)
    clock.now += 10.0
    with floors.asking(["convert"]) as start:
        assert start.floors == [NOON]
    clock.now += 10.0
    with floors.asking(["convert"]) as start:
        assert start.floors == [BOTTOM]


def test_a_notification_lowers_its_lane(floors: Floors) -> None:
    """It carries the lane and the creation time, to the microsecond."""
    created = NOON + timedelta(microseconds=123_457)
    with floors.asking(["convert"]):
        pass
    floors.rise(LATER)
    floors.hear(f"convert {int(NOON.timestamp())}.123457")
    with floors.asking(["convert"]) as start:
        assert start.floors == [created]


@pytest.mark.parametrize(
    "told", ["", "convert", "convert soon", "convert NaN", f"convert 1e{'9' * 9}", str(uuid4())]
)
def test_a_notification_that_says_something_else_is_a_look_at_everything(floors: Floors, told: str) -> None:
    """Anybody may notify a channel."""
    with floors.asking(["convert"]):
        pass
    floors.rise(LATER)
    floors.hear(told)
    with floors.asking(["convert"]) as start:
        assert start.floors == [BOTTOM]


def test_a_service_is_idle_once_a_look_at_everything_found_nothing(floors: Floors, clock: Clock) -> None:
    """Not by a question from the floors on; and not for long without another look."""
    idle = [floors.are_idle]
    for seconds in (0.0, LOOK_SECONDS):
        clock.now += seconds
        with floors.asking(["convert"]):
            pass
        floors.found_nothing()
        idle.append(floors.are_idle)
    clock.now += IDLE_LOOKS * LOOK_SECONDS
    assert [*idle, floors.are_idle] == [False, False, True, False]


def test_a_wake_is_due_once_a_second_while_there_is_work(floors: Floors, clock: Clock) -> None:
    """Not before the first record, and not again before the next one."""
    due = [floors.wake_is_due]
    floors.rise(NOON)
    due.append(floors.wake_is_due)
    floors.woken(NOON)
    floors.rise(NOON)
    due.append(floors.wake_is_due)
    clock.now += WAKE_SECONDS
    due.append(floors.wake_is_due)
    floors.woken(NOON)
    clock.now += WAKE_SECONDS
    assert [*due, floors.wake_is_due] == [False, True, False, True, False]

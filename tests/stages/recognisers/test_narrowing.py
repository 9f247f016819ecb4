"""What cannot pass grows smaller with each failure, and at last a short piece is given up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.recognisers.narrowing import SHORT_SECONDS, Fault, Plan, fault_of, is_too_much, plan
from storage.record import Gap

FAULTS = st.builds(
    Fault, at=st.integers(0, 10**10), seconds=st.floats(1, 3600).map(round), kind=st.sampled_from(Gap)
)


@given(FAULTS)
def test_a_fault_is_read_as_it_was_said(fault: Fault) -> None:
    """By the attempt after it, which knows nothing else."""
    assert fault_of(str(fault)) == fault


@pytest.mark.parametrize(
    "word", [None, "", "out of luck", "1:2", "x:300:crashed", "1:300:unknown", "1:2:3:4"]
)
def test_other_words_are_no_faults(word: str | None) -> None:
    """They say nothing about the audio."""
    assert fault_of(word) is None


def steps(limit: int) -> list[Plan]:
    """What is tried at a place that fails every time, from the second attempt on."""
    last, found = Fault(at=7, seconds=300.0, kind=Gap.CRASHED), []
    for failures in range(2, limit + 1):
        found.append(plan(failures=failures, left=limit - failures, last=last, at=7, longest=300.0))
        last = Fault(at=7, seconds=found[-1].longest, kind=Gap.CRASHED)
    return found


def test_it_is_halved_tried_short_and_given_up_by_the_last_attempt() -> None:
    """Whatever the limit is, as long as it leaves room for that."""
    assert steps(5) == [
        Plan(longest=150),
        Plan(longest=75),
        Plan(longest=20),
        Plan(longest=20, given_up=Gap.CRASHED),
    ]
    assert steps(3) == [Plan(longest=20), Plan(longest=20, given_up=Gap.CRASHED)]
    assert steps(2) == [Plan(longest=300)]
    assert all(each.longest >= SHORT_SECONDS for each in steps(40))


def test_a_failure_that_says_nothing_of_this_place_makes_nothing_smaller() -> None:
    """A process that was killed, a model that was away, or a failure somewhere else."""
    for last in (None, Fault(at=8, seconds=20.0, kind=Gap.CRASHED)):
        assert plan(failures=5, left=0, last=last, at=7, longest=300.0) == Plan(longest=300)


def test_nothing_is_given_up_that_was_not_tried_short() -> None:
    """The last attempt goes to that, and the record stops if it fails."""
    last = Fault(at=7, seconds=300.0, kind=Gap.TOO_SLOW)
    assert plan(failures=5, left=0, last=last, at=7, longest=300.0) == Plan(longest=20)


def test_what_may_be_given_up_has_a_bound() -> None:
    """Three pieces in a row, and a tenth of a long recording."""
    assert not is_too_much(in_a_row=3, seconds=60, whole=100)
    assert is_too_much(in_a_row=4, seconds=80, whole=36_000)
    assert not is_too_much(in_a_row=1, seconds=3600, whole=36_000)
    assert is_too_much(in_a_row=1, seconds=3620, whole=36_000)

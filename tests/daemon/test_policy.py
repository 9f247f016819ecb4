"""What the rules say of a claimed record."""

from uuid import uuid4

import pytest

from daemon.keeper import Hold
from daemon.policy import Taken, refusal, retry_delay
from daemon.settings import WorkSettings
from storage.claim import Claim
from storage.claims import LastFailure
from storage.ending import Hopeless
from storage.record import Milestone, StopCode
from tests.daemon.assembly import Told
from tests.stages.nouns import a_record

STAGE = Told(takes=Milestone.TRANSCRIBE, whole_seconds=100.0)
LIMIT = 3


def taken(last: LastFailure | None = None, **columns: object) -> Taken:
    """Return a claimed record."""
    record = a_record(**columns)
    claim = Claim(record_id=record.id, token=uuid4())
    return Taken(claim=claim, record=record, hold=Hold(token=claim.token), last_failure=last)


@pytest.mark.parametrize("failures", range(1, LIMIT + 1))
def test_a_record_within_its_limit_is_its_stage_s(failures: int) -> None:
    """With limit N a stage runs N times."""
    assert refusal(taken(failures=failures), STAGE, LIMIT) is None


@pytest.mark.parametrize(
    ("last", "told"),
    [
        (LastFailure(kind="failed", cause="OSError: full"), "the last one: OSError: full"),
        (LastFailure(kind="timed_out", cause=None), "the last one: timed_out"),
        (
            LastFailure(kind=None, cause=None),
            "the last one has no end: the process died, or lost its lease",
        ),
    ],
)
def test_the_reason_of_an_exhausted_record_names_the_last_cause(last: LastFailure, told: str) -> None:
    """A person reads why it went wrong, also where nobody lived to say it."""
    expected = Hopeless(StopCode.ATTEMPTS_EXHAUSTED, f"3 attempts in a row came to no outcome; {told}")
    assert refusal(taken(last, failures=LIMIT + 1), STAGE, LIMIT) == expected


def test_an_exhausted_record_without_history_is_stopped_too() -> None:
    """Its events may have been removed by an operator."""
    refused = refusal(taken(None, failures=LIMIT + 1), STAGE, LIMIT)
    assert refused == Hopeless(StopCode.ATTEMPTS_EXHAUSTED, "3 attempts in a row came to no outcome")


def test_a_record_is_overdue_at_a_claim() -> None:
    """Attempts that die never come to a settle which could judge them."""
    assert refusal(taken(milestone_seconds=100.0), STAGE, LIMIT) is None, "more than the limit, not at it"
    assert refusal(taken(milestone_seconds=100.6), STAGE, LIMIT) == Hopeless(
        StopCode.OVERDUE, "101 s of work at transcribe, more than the 100 s it may take"
    )


def test_a_record_that_is_exhausted_and_overdue_is_exhausted() -> None:
    """The failures have a cause to name."""
    refused = refusal(taken(failures=9, milestone_seconds=1e9), STAGE, LIMIT)
    assert refused is not None
    assert refused.code is StopCode.ATTEMPTS_EXHAUSTED


def test_retry_delays_double_up_to_the_longest_and_the_last_failure_waits_for_nothing() -> None:
    """The claim after the last failure only stops the record: no use in letting its owner wait."""
    settings = WorkSettings(failures_limit=6, first_retry_seconds=5.0, longest_retry_seconds=30.0)
    assert [retry_delay(failures, settings) for failures in range(1, 8)] == [5, 10, 20, 30, 30, 0, 0]


def test_retry_delays_stay_numbers() -> None:
    """However high the limit is set."""
    settings = WorkSettings(failures_limit=1000)
    assert retry_delay(999, settings) == settings.longest_retry_seconds

"""What the rules say of a claimed record, apart from any I/O."""

from attrs import frozen

from daemon.keeper import Hold
from daemon.settings import WorkSettings
from stages.stage import Stage
from storage.claim import Claim
from storage.claims import LastFailure
from storage.ending import Hopeless
from storage.record import Record, StopCode


@frozen(kw_only=True)
class Taken:
    """A claimed record as read, with its hold; `last_failure` where it has failed before."""

    claim: Claim
    record: Record
    hold: Hold
    last_failure: LastFailure | None


def refusal(taken: Taken, stage: Stage, failures_limit: int) -> Hopeless | None:
    """Say why the stage must not have this record: its failures ran out, or its time at the milestone."""
    record = taken.record
    if record.failures > failures_limit:
        return Hopeless(StopCode.ATTEMPTS_EXHAUSTED, _why_exhausted(failures_limit, taken.last_failure))
    limit = stage.milestone_limit(record)
    if record.milestone_seconds > limit:
        spent = f"{record.milestone_seconds:.0f} s of work at {record.milestone}"
        return Hopeless(StopCode.OVERDUE, f"{spent}, more than the {limit:.0f} s it may take")
    return None


def retry_delay(failures: int, settings: WorkSettings) -> float:
    """Return the seconds until a failed record is due again; the last failure waits for nothing."""
    if failures >= settings.failures_limit:
        return 0.0
    doubled = settings.first_retry_seconds * 2.0 ** min(failures - 1, 30)
    return min(doubled, settings.longest_retry_seconds)


def _why_exhausted(limit: int, last: LastFailure | None) -> str:
    times = f"{limit} attempts in a row came to no outcome"
    if last is None:
        return times
    if last.kind is None:
        return f"{times}; the last one has no end: the process died, or lost its lease"
    return f"{times}; the last one: {last.cause or last.kind}"

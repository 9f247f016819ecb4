"""The seven ends of an attempt: what it came to, in a closed set. Match exhaustively."""

from attrs import frozen

from storage.claim import ClaimLost
from storage.record import Findings, StopCode


@frozen
class Reached:
    """The stage brought the record to its next milestone."""

    findings: Findings


@frozen
class Deferred:
    """No failure and no next milestone yet: come back after `delay` seconds (0: at once, in the usual order).

    `state` is what the operation last said, for the owner's log and for the milestone guard's reason.
    """

    delay: float
    findings: Findings
    state: str = ""


@frozen
class Hopeless:
    """No retry can help: the record is stopped; `reason` is the full one, for the service owner.

    `findings` are what the work came to all the same.
    """

    code: StopCode
    reason: str
    findings: Findings | None = None


@frozen
class Failed:
    """The stage raised an error of its own; the claim stays counted.

    `fault` is the stage's own word for it, which the record's next attempt is told.
    """

    cause: str
    fault: str | None = None


@frozen
class TimedOut:
    """The attempt used up its time; the claim stays counted."""

    cause: str


@frozen
class GivenBack:
    """The service's own stop ended the attempt: uncounted, no verdict."""

    why: str


Ending = Reached | Deferred | Hopeless | Failed | TimedOut | GivenBack | ClaimLost
"""Every way an attempt may end."""

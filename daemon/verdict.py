"""What an attempt came to: the pure decision, in the order of the documents' rule on shutdown.

1. the stage returned: its outcome, also during a stop;
2. it raised an error of its own: a failure, also during a stop;
3. its lease ended it: the claim is lost;
4. its time limit ended it: a failure of its own kind;
5. a stop was asked for and the cancel ended it: given back, uncounted;
6. anything else (a crash elsewhere in the process, SystemExit): spent.
"""

from collections.abc import Iterator

import trio
from attrs import frozen

from stages.stage import Outcome
from storage.claim import ClaimLost
from storage.ending import Ending, Failed, GivenBack, TimedOut
from storage.errors import StageFailed

LONGEST_CAUSE = 2000


@frozen(kw_only=True)
class Circumstances:
    """What was true when the work ended; `ring_cancelled` says that a stop or a crash cancelled all work."""

    lease_ended: bool
    limit_ended: bool
    limit_seconds: float
    stop_asked: bool
    ring_cancelled: bool

    @property
    def cancelled(self) -> bool:
        """True when the stage was cancelled at all, other than by itself."""
        return self.lease_ended or self.limit_ended or self.ring_cancelled


def judge(outcome: Outcome | None, raised: BaseException | None, around: Circumstances) -> Ending:
    """Return the attempt's end."""
    if outcome is not None:
        return outcome
    if own := own_errors(raised, around):
        return Failed(cause_of(own[0]), own[0].fault if isinstance(own[0], StageFailed) else None)
    if around.lease_ended:
        return ClaimLost()
    if around.limit_ended:
        return TimedOut(f"the attempt took more than the {around.limit_seconds:.0f} s it may take")
    if around.stop_asked and around.ring_cancelled and _ended_by_cancel(raised):
        return GivenBack("the service was stopped")
    what = "nothing" if raised is None else cause_of(raised)
    return Failed(f"the stage came to no outcome; what ended it: {what}")


def own_errors(raised: BaseException | None, around: Circumstances) -> list[Exception]:
    """Return the stage's own errors: those that no cancel from beyond it had caused.

    A stage's own deadlines work by a cancel too: without one from beyond, every error is the stage's own.
    """
    return [error for error, late in _errors(raised) if not (late and around.cancelled)]


def cleanup_errors(
    outcome: Outcome | None, raised: BaseException | None, around: Circumstances
) -> list[Exception]:
    """Return what cleaning up raised after the work was over: worth a line, but no verdict."""
    return [error for error, late in _errors(raised) if outcome is not None or (late and around.cancelled)]


def cause_of(error: BaseException) -> str:
    """Return an error as one line that any column and any log can hold.

    One raised while another was on its way, as a failing close is, tells of that other one too.
    """
    text = f"{type(error).__name__}: {error}"
    first = None if error.__suppress_context__ else error.__context__
    if isinstance(first, Exception):
        text += f" (on the way from {type(first).__name__}: {first})"
    text = " ".join(text.split())
    storable = text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return storable[:LONGEST_CAUSE]


def _ended_by_cancel(raised: BaseException | None) -> bool:
    """True when nothing but a cancel, or what a cleanup made of it, ended the work: no exit, no interrupt."""
    return all(isinstance(leaf, trio.Cancelled | Exception) for leaf, _ in _leaves(raised))


def _errors(raised: BaseException | None) -> Iterator[tuple[Exception, bool]]:
    for leaf, late in _leaves(raised):
        if isinstance(leaf, Exception):
            yield leaf, late


def _leaves(error: BaseException | None) -> Iterator[tuple[BaseException, bool]]:
    """Yield each single error, and whether a Cancelled is among what led to it."""
    if error is None:
        return
    late = _after_cancel(error)
    if not isinstance(error, BaseExceptionGroup):
        yield error, late
        return
    for inner in error.exceptions:
        for leaf, leaf_late in _leaves(inner):
            yield leaf, late or leaf_late


def _after_cancel(error: BaseException) -> bool:
    """True when a Cancelled is among what led to `error`."""
    seen: set[int] = set()
    pending = [error.__cause__, error.__context__]
    while pending:
        led_to = pending.pop()
        if led_to is None or id(led_to) in seen:
            continue
        seen.add(id(led_to))
        if isinstance(led_to, trio.Cancelled):
            return True
        pending += [led_to.__cause__, led_to.__context__]
        if isinstance(led_to, BaseExceptionGroup):
            pending += led_to.exceptions
    return False

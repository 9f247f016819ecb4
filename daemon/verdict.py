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

LONGEST_CAUSE = 2000


@frozen(kw_only=True)
class Circumstances:
    """What was true when the work ended."""

    lease_ended: bool
    limit_ended: bool
    limit_seconds: float
    stop_asked: bool


def judge(outcome: Outcome | None, raised: BaseException | None, around: Circumstances) -> Ending:
    """Return the attempt's end."""
    if outcome is not None:
        return outcome
    if own := own_errors(raised):
        return Failed(cause_of(own[0]))
    if around.lease_ended:
        return ClaimLost()
    if around.limit_ended:
        return TimedOut(f"the attempt took more than the {around.limit_seconds:.0f} s it may take")
    if around.stop_asked and was_cancelled(raised):
        return GivenBack("the service was stopped")
    return Failed(f"the service was ended by something else ({cause_of(raised)})")


def own_errors(raised: BaseException | None) -> list[Exception]:
    """Return the stage's own errors: those that no cancel had caused."""
    return [error for error in _leaves(raised) if isinstance(error, Exception) and not _after_cancel(error)]


def cleanup_errors(raised: BaseException | None) -> list[Exception]:
    """Return what the stage's cleanup raised after it was cancelled: worth a line, but no verdict."""
    return [error for error in _leaves(raised) if isinstance(error, Exception) and _after_cancel(error)]


def was_cancelled(raised: BaseException | None) -> bool:
    """True when a cancel, or what a cleanup made of it, ended the work."""
    return any(isinstance(error, trio.Cancelled) or _after_cancel(error) for error in _leaves(raised))


def cause_of(error: BaseException | None) -> str:
    """Return an error as one line that any column and any log can hold."""
    if error is None:
        return "no outcome"
    text = " ".join(f"{type(error).__name__}: {error}".split())
    storable = text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return storable[:LONGEST_CAUSE]


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    elif error is not None:
        yield error


def _after_cancel(error: BaseException) -> bool:
    """True when a Cancelled is among what led to `error`."""
    seen: set[int] = set()
    pending = [error.__cause__, error.__context__]
    while pending:
        led_to = pending.pop()
        if led_to is None or id(led_to) in seen:
            continue
        seen.add(id(led_to))
        if any(isinstance(leaf, trio.Cancelled) for leaf in _leaves(led_to)):
            return True
        pending += [led_to.__cause__, led_to.__context__]
    return False

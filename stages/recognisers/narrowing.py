"""A part of the audio that cannot pass is made smaller with each failure, and at last a short piece given up.

The failures of a record are counted by its claims; what failed and where is told by the failure itself, to
the attempt after it. So nothing has to be written between two failures, and a process that dies loses no
step: an attempt that has left no word is simply made again. No I/O.
"""

from attrs import frozen

from storage.record import Gap

SHORT_SECONDS = 20.0  # what is given up at once: a few sentences
_LEAST_LIMIT = 3  # with fewer attempts there is no room for smaller ones
MOST_IN_A_ROW = 3
_MOST_SHARE = 0.1  # of the audio
_ALWAYS_SECONDS = MOST_IN_A_ROW * SHORT_SECONDS


@frozen(kw_only=True)
class Fault:
    """What failed: a part that began at the sample `at` and had so many seconds at the most."""

    at: int
    seconds: float
    kind: Gap

    def __str__(self) -> str:
        """Return it as the word that the next attempt is told."""
        return f"{self.at}:{self.seconds:g}:{self.kind}"


@frozen(kw_only=True)
class Plan:
    """How to go on: with so many seconds at the most, or by giving up a short piece for that reason."""

    longest: float
    given_up: Gap | None = None


def fault_of(word: str | None) -> Fault | None:
    """Return what an attempt has said of its failure; None where that is no word of ours."""
    match (word or "").split(":"):
        case [at, seconds, kind] if at.isdecimal() and kind in set(Gap):
            return Fault(at=int(at), seconds=float(seconds), kind=Gap(kind))
    return None


def plan(*, failures: int, left: int, last: Fault | None, at: int, longest: float) -> Plan:
    """Return what to try at the sample `at`; `failures` counts this attempt; `left` more follow.

    It is halved with each failure, and the attempt before the last is made with a short piece in any case.
    """
    if last is None or last.at != at or failures + left < _LEAST_LIMIT:
        return Plan(longest=longest)
    short = min(longest, SHORT_SECONDS)
    if left <= 0 and last.seconds <= short:
        return Plan(longest=short, given_up=last.kind)
    if left <= 1:
        return Plan(longest=short)
    return Plan(longest=max(short, longest / 2 ** (failures - 1)))


def is_too_much(*, in_a_row: int, seconds: float, whole: float) -> bool:
    """Tell whether more was given up than a text may lack."""
    return in_a_row > MOST_IN_A_ROW or seconds > max(_ALWAYS_SECONDS, _MOST_SHARE * whole)

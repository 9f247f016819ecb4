"""What was asked of an emulator and what came of it: every call, so that a test can count them."""

import time
from collections.abc import Iterable
from typing import Any

from attrs import asdict, define, field, frozen

from tests.emulators.serving import Request


@define(kw_only=True)
class Call:
    """One call: `acted` when what it asked for was done, `status` is what was answered, if anything was.

    `at` and `acted_at` are seconds of a clock that all calls share; `about` is what the call was about, such
    as an operation's id, and `noted` what a test may want to know of its body.
    """

    number: int
    operation: str
    at: float
    method: str
    path: str
    headers: dict[str, str]
    size: int
    acted: bool = False
    acted_at: float = 0.0
    status: int | None = None
    over_quota: bool = False
    about: str = ""
    noted: dict[str, Any] = field(factory=dict)


@frozen
class Ledger:
    """All calls, in the order in which they came."""

    calls: list[Call] = field(factory=list)

    def open(self, operation: str, request: Request) -> Call:
        """Note that a call has come."""
        call = Call(
            number=len(self.calls),
            operation=operation,
            at=time.monotonic(),
            method=request.method,
            path=request.path,
            headers=dict(request.headers),
            size=len(request.body),
        )
        self.calls.append(call)
        return call

    def acted(self, operation: str, since: float) -> list[Call]:
        """Return the calls of an operation that were acted on since then."""
        done = (each for each in self.calls if each.acted and each.acted_at > since)
        return [each for each in done if each.operation == operation]

    def as_json(self) -> list[dict[str, Any]]:
        """Return all of them as plain data."""
        return [asdict(call) for call in self.calls]


def most_within(moments: Iterable[float], seconds: float) -> int:
    """Return how many of the moments lie in one window of so many seconds, at the most."""
    ordered = sorted(moments)
    most, first = 0, 0
    for last, moment in enumerate(ordered):
        while moment - ordered[first] >= seconds:
            first += 1
        most = max(most, last - first + 1)
    return most

"""Floors: where in a lane's order a claim may begin to look, as far as this process knows.

While somebody holds an old snapshot (a backup, a forgotten transaction), the index entries of all that was
claimed since stay, and a claim that begins at the lane's start walks over them anew each time. So each claim
begins at the lane's floor: it rises to what was claimed last, and falls to whatever becomes ready below it,
which this process knows of its own work and hears from the others. A floor is a hint, never the truth:
every so often a claim looks at everything, as often as that look is cheap.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from attrs import frozen

BOTTOM = datetime(1, 1, 1, tzinfo=UTC)
LOOK_SECONDS = 1.0  # a look at everything is due this often,
LOOK_SHARE = 0.05  # unless it would take more than this share of the time
IDLE_LOOKS = 3  # a service is idle until so many looks could have found something
WAKE_SECONDS = 1.0  # while there is work, what has come due is woken this often
LATE_SECONDS = 2.0  # a moment to wake at may be written this long before its transaction ends

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Start:
    """Where one claim begins to look: a creation time for each lane, and a moment to wake at."""

    floors: list[datetime]
    wake_from: datetime


class Floors:
    """The floors of one process. One question is under way at a time: see `asking`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin at the bottom of every lane."""
        self._clock = clock
        self._floors: dict[str, datetime] = {}
        self._asked: Sequence[str] = ()
        self._fell: dict[str, datetime] = {}  # since the question was asked
        self._woken_until = BOTTOM
        self._look_due = clock()
        self._looked = False
        self._nothing_at = -math.inf
        self._rose = False  # since the last wake
        self._woken_at = -math.inf

    @property
    def woken_until(self) -> datetime:
        """Until when, by the database's clock, all that slept has been woken for certain."""
        return self._woken_until

    @property
    def wake_is_due(self) -> bool:
        """True when so much may have come due since the last wake that a claim would have to pass over it.

        The end of every lease is a moment to wake at; an old snapshot keeps those of leases long settled.
        """
        return self._rose and self._clock() - self._woken_at >= WAKE_SECONDS

    @property
    def are_idle(self) -> bool:
        """True when a look at everything has just found nothing."""
        return self._clock() - self._nothing_at < IDLE_LOOKS * LOOK_SECONDS

    def found_nothing(self) -> None:
        """The question that was asked last had no work for an answer."""
        if self._looked:
            self._nothing_at = self._clock()

    @contextmanager
    def asking(self, lanes: Sequence[str]) -> Iterator[Start]:
        """Hand out where one claim begins; what falls from here on is not forgotten by the next `rise`."""
        self._asked = lanes
        self._fell.clear()
        began = self._clock()
        self._looked = began >= self._look_due
        if not self._looked:
            yield Start([self._floors.get(lane, BOTTOM) for lane in lanes], self._woken_until)
            return
        yield Start([BOTTOM for _ in lanes], BOTTOM)
        ended = self._clock()
        self._look_due = ended + max(LOOK_SECONDS, (ended - began) / LOOK_SHARE)

    def rise(self, created_at: datetime) -> None:
        """The first ready record of the lanes asked for was this one: none of them has one before it."""
        self._rose = True
        for lane in self._asked:
            self._floors[lane] = min(created_at, self._fell.get(lane, created_at))

    def fall(self, lane: str, created_at: datetime) -> None:
        """A record of `lane` has become ready."""
        self._fell[lane] = min(created_at, self._fell.get(lane, created_at))
        if lane in self._floors:
            self._floors[lane] = min(created_at, self._floors[lane])

    def woken(self, until: datetime) -> None:
        """All that slept until that moment, by the database's clock, has been woken."""
        self._woken_until = until - timedelta(seconds=LATE_SECONDS)
        self._woken_at, self._rose = self._clock(), False

    def hear(self, told: str) -> None:
        """Take a notification into account: a lane and when its record was created, in seconds since 1970.

        One that says something else, from whomever it may be, has the next claim look at everything.
        """
        lane, _, seconds = told.rpartition(" ")
        try:
            self.fall(lane, _EPOCH + timedelta(microseconds=int(Decimal(seconds) * 1_000_000)))
        except (ArithmeticError, ValueError):
            self._look_due = self._clock()

"""A store in memory for tests in which hours pass at once: the reference model, spoken to like `Claims`.

What becomes of each call is decided by a `Fate`: it may be slow, may not arrive, may arrive only after its
caller gave up, or may lose its answer. Time is Trio's clock, from which the store's own may be set apart.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

import trio
from attrs import field, frozen

from storage.claim import Claim, ClaimLost, NotFound, NoWork
from storage.claims import LastFailure, Passage, Settled
from storage.errors import DatabaseUnavailable, DatabaseUnreached, DataRefused
from storage.record import Milestone, Record
from tests.builders import FAILURES_LIMIT, LEASES, Written
from tests.model.reference import Reference

T = TypeVar("T")


@frozen(kw_only=True)
class Fate:
    """What becomes of one call, in seconds: it takes effect after `before`, is answered `after` that.

    `late` is not None when it takes effect only so long after its caller was told that the database is away.
    A call that is cancelled before its effect has it all the same when it is `past_cancel`.
    """

    before: float = 0.0
    after: float = 0.0
    arrives: bool = True
    late: float | None = None
    answered: bool = True
    past_cancel: bool = False


WELL: Final = Fate()
AWAY: Final = Fate(arrives=False)
ANSWER_LOST: Final = Fate(answered=False)


class FakeStore:
    """The database of all processes of one Trio run."""

    def __init__(self) -> None:
        self.reference = Reference(self.now)
        self._zero = trio.current_time()
        self._apart = 0.0
        self._acting_at: float | None = None
        self._late: list[tuple[float, int, Callable[[], object]]] = []
        self._sent = 0
        self.refused_unheard = 0

    def now(self) -> float:
        """Return the seconds on the store's own clock."""
        at = trio.current_time() if self._acting_at is None else self._acting_at
        return at - self._zero + self._apart

    def set_clock(self, seconds: float) -> None:
        """Set the store's clock forward by so much (or back), against Trio's."""
        self.catch_up()
        self._apart += seconds

    async def call(self, fate: Fate, effect: Callable[[], T]) -> T:
        """Do one indivisible step, as its fate has it; raises DatabaseUnavailable where that says so."""
        try:
            await trio.sleep(fate.before)
        except trio.Cancelled:
            if fate.past_cancel:
                self._send(0.0, effect)
            raise
        if not fate.arrives:
            raise DatabaseUnreached("the database is away")
        if fate.late is not None:
            self._send(fate.late, effect)
            raise DatabaseUnavailable("the database did not answer in time")
        answer = self.act(effect)
        if fate.after:
            await trio.sleep(fate.after)
        if not fate.answered:
            raise DatabaseUnavailable("the answer was lost")
        return answer

    def act(self, effect: Callable[[], T]) -> T:
        """Do one indivisible step now, after those that came due before."""
        self.catch_up()
        return effect()

    def catch_up(self) -> None:
        """Let the late steps that are due take their effect, each at its own moment."""
        now = trio.current_time()
        while self._late and self._late[0][0] <= now:
            self._acting_at, _, effect = heapq.heappop(self._late)
            try:
                effect()
            except DataRefused:
                self.refused_unheard += 1
            finally:
                self._acting_at = None

    def _send(self, seconds: float, effect: Callable[[], object]) -> None:
        self._sent += 1
        heapq.heappush(self._late, (trio.current_time() + seconds, self._sent, effect))


def _well(verb: str) -> Fate:
    del verb
    return WELL


@frozen(kw_only=True)
class FakeClaims:
    """Speaks like `storage.claims.Claims`; `fate_of` decides on each call by the name of its verb."""

    store: FakeStore
    stores: tuple[UUID, ...]
    claimed_by: str = "one"
    failures_limit: int = FAILURES_LIMIT
    leases: Mapping[Milestone, float] = field(factory=lambda: LEASES)
    fate_of: Callable[[str], Fate] = _well

    async def claim(self, token: UUID, lanes: Iterable[str]) -> Claim | NoWork:
        """Take the first ready record of the free lanes."""
        step = partial(
            self.store.reference.claim,
            token,
            list(lanes),
            stores=self.stores,
            claimed_by=self.claimed_by,
            failures_limit=self.failures_limit,
            leases=self.leases,
        )
        return await self._call("claim", step)

    async def read(self, record_id: UUID) -> Record | NotFound:
        """Read a record."""

        def step() -> Record | NotFound:
            row = self.store.reference.read(record_id)
            return row if isinstance(row, NotFound) else row.as_record()

        return await self._call("read", step)

    async def last_failure(self, claim: Claim) -> LastFailure | None:
        """Return how the claim before this one ended."""
        return await self._call("last_failure", partial(self.store.reference.last_failure, claim))

    async def renew(self, tokens: Iterable[UUID]) -> dict[UUID, float]:
        """Push leases."""
        return await self._call("renew", partial(self.store.reference.renew, list(tokens)))

    async def settle(
        self, claim: Claim, ending: Written, passage: Passage, detail: Mapping[str, Any]
    ) -> Settled | ClaimLost:
        """Write an end if the claim is still its own."""
        step = partial(self.store.reference.settle, claim, ending, passage, self.claimed_by, detail)
        return await self._call("settle", step)

    async def give_back(self, token: UUID, why: str) -> bool:
        """Give a claim back by its token."""
        step = partial(self.store.reference.give_back, token, self.claimed_by, why)
        return await self._call("give_back", step)

    async def wake(self) -> None:
        """Let what has come due wait for nothing but a claimer."""
        await self._call("wake", self.store.reference.wake)

    async def _call(self, verb: str, step: Callable[[], T]) -> T:
        return await self.store.call(self.fate_of(verb), step)

"""The keeper: renews the leases of all claims held here, and pays back claims that nobody here holds.

A lease is a cancel scope's deadline, pushed after each renewal by the stored number of seconds: when
PostgreSQL is away, nothing pushes it, and Trio itself ends the work before another may start.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog
import trio
from attrs import define, field

from daemon.metrics import Metrics
from daemon.outage import Outage
from daemon.owed import Debts
from storage.claims import Claims
from storage.errors import DatabaseUnavailable

log = structlog.get_logger()

MARGIN_SHARE = 0.1
LONGEST_MARGIN_SECONDS = 5.0
WHY_LATE = "the claim's answer was lost, or an earlier run could not give it back in time"


def work_until(asked_at: float, lease_seconds: float) -> float:
    """Return when work under a lease asked for at `asked_at` must end: a little before the lease does."""
    return asked_at + lease_seconds - min(LONGEST_MARGIN_SECONDS, lease_seconds * MARGIN_SHARE)


@define(kw_only=True)
class Hold:
    """A claim held here, from before it is asked for. `scope` holds the work.

    `claimed` says that the answer has come; `owed` that the claim is to be given back should the service
    end before the settle; `unpaid` that its give-back could not be told to the database.
    """

    token: UUID
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    claimed: bool = False
    owed: bool = True
    unpaid: bool = False

    def push(self, asked_at: float, lease_seconds: float) -> None:
        """Take a fresh lease, asked for at `asked_at`, into account."""
        self.scope.deadline = work_until(asked_at, lease_seconds)

    def lose(self) -> None:
        """The claim is no longer ours: end the work."""
        self.scope.cancel(reason="the claim is lost")


class Keeper:
    """Holds the claims of this process."""

    def __init__(
        self,
        claims: Claims,
        debts: Debts,
        outage: Outage,
        metrics: Metrics,
        promise: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Begin with no claim held and with the debts of earlier runs.

        `promise` is told, again and again, within how many seconds it will be told next.
        """
        self._promise = promise
        self._claims = claims
        self._debts = debts
        self._outage = outage
        self._metrics = metrics
        self._holds: dict[UUID, Hold] = {}
        self._patience = max(claims.leases.values(), default=0.0)

    @contextmanager
    def holding(self, token: UUID) -> Iterator[Hold]:
        """Hold a claim: once it is claimed, its lease is kept fresh until the attempt is settled."""
        hold = self._holds[token] = Hold(token=token)
        try:
            yield hold
        finally:
            del self._holds[token]
            self._metrics.claims_held(self.claimed)
            if hold.unpaid:
                self.give_back_later(token)

    @property
    def claimed(self) -> int:
        """How many claims are held here for sure."""
        return sum(hold.claimed for hold in self._holds.values())

    def give_back_later(self, token: UUID) -> None:
        """Take on a claim that nobody here holds any more, until its lease must have passed."""
        self._debts.incur(token, trio.current_time() + self._patience)

    def owe(self) -> None:
        """Write down every claim that an orderly end of the process leaves open."""
        for hold in self._holds.values():
            if hold.owed:
                self._debts.incur(hold.token, math.inf)
        self._debts.write()

    async def keep(self, seconds: float) -> None:
        """Renew, pay back, and wake what has come due, every so many seconds, for ever."""
        while True:
            asked_at = trio.current_time()
            self._promise(seconds)
            try:
                await self.renew()
                await self.pay_back()
                await self._claims.wake()
            except DatabaseUnavailable as error:
                self._outage.noticed(error, asked_at)
            self._promise(seconds)
            await trio.sleep(seconds)

    async def renew(self) -> None:
        """Push every lease held here; end the work on those that are no longer ours."""
        asked = {token: hold for token, hold in self._holds.items() if hold.claimed}
        if not asked:
            return
        asked_at = trio.current_time()
        renewed = await self._claims.renew(asked)
        for token, hold in asked.items():
            if token in renewed:
                hold.push(asked_at, renewed[token])
            else:
                hold.lose()
        self._outage.over()
        self._metrics.leases_renewed(len(renewed), lost=len(asked) - len(renewed))
        self._metrics.claims_held(self.claimed)
        log.debug("keeper.renewed", claims=len(renewed))

    async def pay_back(self) -> None:
        """Give back every claim that is owed; one that no record carries may still come, and is kept."""
        asked_at = trio.current_time()
        for token in self._debts.open_at(asked_at):
            self._promise(0.0)
            given_back = await self._claims.give_back(token, WHY_LATE)
            self._outage.over()
            if given_back:
                log.info("give_back.repaid", token=str(token))
                self._debts.settle(token)
            else:
                self._debts.not_found(token, asked_at)

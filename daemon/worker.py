"""Workers: each claims any ready record and runs the stage its milestone asks for, one attempt after another.

One claim is in flight at a time: whoever has the turn reads the free lanes, claims, takes the slot and passes
the turn on; while nothing is ready it keeps the turn and waits for the bell, or a second. So the process asks
the database once a second when idle, however many workers it has.
"""

from contextlib import ExitStack
from typing import assert_never
from uuid import uuid4

import structlog
import trio
from attrs import define, field, frozen

from daemon.attempt import Attempts
from daemon.bell import Bell
from daemon.keeper import Hold, Keeper
from daemon.lanes import Lanes
from daemon.metrics import NO_STAGE, Mark, Metrics
from daemon.outage import Outage
from daemon.policy import Taken
from daemon.settings import WorkSettings
from daemon.stop import Stop
from daemon.systemd import Beats
from storage.claim import ClaimLost, NotFound, NoWork
from storage.claims import Claims
from storage.errors import DatabaseUnavailable, DatabaseUnreached

log = structlog.get_logger()


@frozen
class CouldNotAsk:
    """The database did not answer: that says nothing of whether there is work."""


Look = Taken | NoWork | ClaimLost | CouldNotAsk


@define(kw_only=True)
class Workers:
    """What the workers share; `settings` may be replaced while they work."""

    claims: Claims
    attempts: Attempts
    keeper: Keeper
    lanes: Lanes
    bell: Bell
    beats: Beats
    stop: Stop
    outage: Outage
    metrics: Metrics
    settings: WorkSettings
    _turn: trio.Lock = field(factory=trio.Lock, init=False)

    async def work(self, name: str) -> None:
        """Claim and work until a stop is asked for."""
        log.debug("worker.started", worker=name)
        try:
            while not self.stop.asked:
                with ExitStack() as keeping:
                    self.beats.leave(name)  # to wait for one's turn may take as long as there is no work
                    async with self._turn:
                        taken = await self._take(name, keeping)
                    if taken is not None:
                        self.beats.promise(name, self.attempts.longest_seconds(taken))
                        await self.attempts.run(taken)
                self.bell.ring()  # a slot is free, and the record may be ready for its next stage
        finally:
            self.beats.leave(name)  # also when cancelled: whoever has ended is expected no more

    async def _take(self, name: str, keeping: ExitStack) -> Taken | None:
        """Look for work until there is some; None when a stop is asked for meanwhile."""
        while not self.stop.asked:
            self.beats.promise(name, self.settings.poll_seconds)
            ring = self.bell.next_ring
            look = await self.look(keeping)
            match look:
                case Taken():
                    return look
                case NoWork() | CouldNotAsk():
                    await self.bell.wait(ring, self.settings.poll_seconds)
                case ClaimLost():
                    continue
                case _:
                    assert_never(look)
        return None

    async def look(self, keeping: ExitStack) -> Look:
        """Claim once; a record that is taken has its hold and its lane's slot kept in `keeping`.

        A claim that is committed and whose answer never arrives would be held by nobody, so the question
        is shielded (its calls have deadlines), and its token is given back when the answer is lost. A claim
        that was never sent owes nothing.
        """
        token, asked_at = uuid4(), trio.current_time()
        free = self.lanes.free()
        hold = keeping.enter_context(self.keeper.holding(token))
        try:
            with trio.CancelScope(shield=True):
                look = await self._ask(hold, asked_at, free)
        except DatabaseUnavailable as error:
            log.debug("claim.answer_lost", token=str(token), reason=str(error))
            self.outage.noticed(error, asked_at)
            self.keeper.give_back_later(token)
            look = CouldNotAsk()
        if not isinstance(look, CouldNotAsk):
            self.outage.over()
        if not isinstance(look, Taken):
            keeping.close()
        elif look.record.failures <= self.settings.failures_limit:
            # An exhausted record needs no slot: it is only to be stopped.
            keeping.enter_context(self.lanes[self.attempts.stage_of(look.record).lane].slot())
        return look

    async def _ask(self, hold: Hold, asked_at: float, free: list[str]) -> Look:
        try:
            claim = await self.claims.claim(hold.token, free)
        except DatabaseUnreached as error:
            self.outage.noticed(error, asked_at)
            return CouldNotAsk()
        if isinstance(claim, NoWork):
            return claim if free else claim.explained("every lane is busy or closed")
        self.metrics.claimed(trio.current_time() - asked_at)
        record = await self.claims.read(claim.record_id)
        if isinstance(record, NotFound) or record.claim_token != claim.token:
            log.warning("claim.lost", record=str(claim.record_id), token=str(claim.token))
            self.metrics.attempt_ended(NO_STAGE, Mark.LOST, trio.current_time() - asked_at)
            return ClaimLost()
        hold.push(asked_at, self.claims.leases[record.milestone])
        hold.claimed = True
        self.metrics.claims_held(self.keeper.claimed)
        last = await self.claims.last_failure(claim) if record.failures > 1 else None
        log.debug("record.claimed", record=str(record.id), token=str(claim.token), failures=record.failures)
        return Taken(claim=claim, record=record, hold=hold, last_failure=last)

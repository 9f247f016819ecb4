"""One attempt: from a claim to its one settle, whatever happens in between."""

import math

import structlog
import trio
from attrs import define

from daemon.lanes import Lanes
from daemon.metrics import Metrics
from daemon.outage import Outage
from daemon.policy import Taken, refusal, retry_delay
from daemon.settings import WorkSettings
from daemon.stop import Stop
from daemon.telling import MARKS, facts_of, tell
from daemon.verdict import Circumstances, cause_of, cleanup_errors, judge, own_errors
from daemon.workplace import Workplace
from stages.stage import Outcome, Stage, lane_after
from storage.claim import ClaimLost
from storage.claims import Claims, Passage, Settled
from storage.ending import Deferred, Ending, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.errors import DatabaseUnavailable, DataRefused, MeansAway, RubezhError
from storage.record import Advance, Record

log = structlog.get_logger()

SETTLE_PAUSE_SECONDS = 0.5


@define(kw_only=True)
class Attempts:
    """Runs attempts; one for the whole process. `settings` may be replaced while they run."""

    claims: Claims
    line: tuple[Stage, ...]
    lanes: Lanes
    workplace: Workplace
    settings: WorkSettings
    stop: Stop
    outage: Outage
    metrics: Metrics

    def stage_of(self, record: Record) -> Stage:
        """Return the stage that a record's milestone asks for."""
        return next(stage for stage in self.line if stage.takes is record.milestone)

    def longest_seconds(self, taken: Taken) -> float:
        """Return how long `run` may take: the work and its settle."""
        return self.stage_of(taken.record).time_limit(taken.record) + self.settings.settle_seconds

    async def run(self, taken: Taken) -> None:
        """Work one claim and settle it before leaving; an error of the stage is an end, not a crash."""
        record, stage = taken.record, self.stage_of(taken.record)
        started = trio.current_time()
        with structlog.contextvars.bound_contextvars(
            record=str(record.id),
            owner=str(record.owner_id),
            stage=stage.name,
            milestone=str(record.milestone),
        ):
            leaving: BaseException | None = None
            ending: Ending | None = refusal(taken, stage, self.settings.failures_limit)
            if ending is None:
                ending, leaving = await self._work(taken, stage)
            held: Ending = ClaimLost()
            settling = trio.current_time()
            with trio.move_on_after(self.settings.settle_seconds, shield=True) as patience:
                held = await self._settle(taken, stage, ending, started, patience)
            if patience.cancelled_caught:
                log.error("settle.given_up", after_seconds=round(trio.current_time() - settling, 1))
                taken.hold.unpaid = isinstance(ending, GivenBack)
            self.metrics.attempt_ended(stage.name, MARKS[type(held)], trio.current_time() - started)
            if isinstance(held, Reached | Deferred) and isinstance(held.findings, Advance):
                audio = held.findings.recognised_seconds - record.recognised_seconds
                self.metrics.recognised(stage.lane, audio_seconds=audio, seconds=settling - started)
        if leaving is not None:
            raise leaving

    async def _work(self, taken: Taken, stage: Stage) -> tuple[Ending, BaseException | None]:
        """Run the stage; return the end and, when something beyond us ended it, what must go on rising."""
        claim, record, hold = taken.claim, taken.record, taken.hold
        outcome: Outcome | None = None
        raised: BaseException | None = None
        last_fault = None if taken.last_failure is None else taken.last_failure.fault
        attempts_left = self.settings.failures_limit - record.failures
        seconds = stage.time_limit(record)
        limit = trio.move_on_after(seconds)
        try:
            with hold.scope, limit:
                async with self.workplace.tools(
                    claim, record, last_fault=last_fault, attempts_left=attempts_left
                ) as tools:
                    outcome = await stage.work(record, tools)
        except BaseException as error:  # noqa: BLE001, ASYNC103 - judged; what is not ours rises later
            raised = error
        around = Circumstances(
            lease_ended=_ended_by(hold.scope, raised),
            limit_ended=_ended_by(limit, raised),
            limit_seconds=seconds,
            stop_asked=self.stop.asked,
            ring_cancelled=trio.current_effective_deadline() == -math.inf,
        )
        ending, own = judge(outcome, raised, around), own_errors(raised, around)
        self._tell_lane(stage, ending, own)
        for late in cleanup_errors(outcome, raised, around):
            log.warning("record.cleanup_failed", reason=cause_of(late), exc_info=late)
        if isinstance(ending, Failed):
            known = len(own) == 1 and isinstance(own[0], RubezhError)
            trace = None if known else raised
            log.warning("record.failed", reason=ending.cause, failures=record.failures, exc_info=trace)
        return ending, _beyond_us(raised)

    def _tell_lane(self, stage: Stage, ending: Ending, own: list[Exception]) -> None:
        lane = self.lanes[stage.lane]
        if isinstance(ending, Reached | Deferred | Hopeless):
            lane.worked()
        elif away := [error for error in own if isinstance(error, MeansAway)]:
            lane.lacked(away[0])

    async def _settle(
        self, taken: Taken, stage: Stage, ending: Ending, started: float, patience: trio.CancelScope
    ) -> Ending:
        """Write the end, once, however often it must be tried; return the end that holds.

        A service that has crashed may have taken its database along: then the patience is the crash's.
        """
        claim, record = taken.claim, taken.record
        passage = Passage(
            gives=stage.gives,
            next_lane=lane_after(self.line, stage.gives),
            milestone_limit=stage.milestone_limit(record),
            retry_delay=retry_delay(record.failures, self.settings),
        )
        while not isinstance(ending, ClaimLost):
            # A failure of the record's own is not given back should the process end before the settle.
            taken.hold.owed = not isinstance(ending, Failed | TimedOut)
            asked_at = trio.current_time()
            detail = facts_of(ending, stage, trio.current_time() - started)
            try:
                settled = await self.claims.settle(claim, ending, passage, detail)
            except DataRefused as error:
                log.warning("settle.refused_for_data", reason=str(error))
                # A failure that is refused too is left to its lease: it stays counted.
                ending = ClaimLost() if isinstance(ending, Failed) else Failed(cause_of(error))
                continue
            except DatabaseUnavailable as error:
                log.debug("settle.answer_lost", reason=str(error))
                self.outage.noticed(error, asked_at)
                patience.deadline = min(patience.deadline, self.stop.crash_ends_at)
                await trio.sleep(SETTLE_PAUSE_SECONDS)
                continue
            self.outage.over()
            self.metrics.settled(trio.current_time() - asked_at)
            if isinstance(settled, Settled):
                if settled.stopped is not None:
                    self.metrics.stopped(settled.stopped)
                tell(ending, settled, stage, record)
                return ending
            ending = ClaimLost()
        log.warning("claim.lost", token=str(claim.token))
        return ending


def _ended_by(scope: trio.CancelScope, raised: BaseException | None) -> bool:
    """True when `scope` ended the work, also where somebody else's cancel took its Cancelled away."""
    return scope.cancelled_caught or (scope.cancel_called and raised is not None)


def _beyond_us(raised: BaseException | None) -> BaseException | None:
    """Return what of `raised` is no stage's error: the cancel of a stop, an exit, an interrupt."""
    if raised is None or isinstance(raised, Exception):
        return None
    if isinstance(raised, BaseExceptionGroup):
        return raised.split(Exception)[1]
    return raised

"""A process of a simulated run: the real parts of a daemon on the fake store, and the ways it may end."""

from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from uuid import UUID

import trio
from attrs import field, frozen

from daemon.attempt import Attempts
from daemon.bell import Bell
from daemon.keeper import Keeper
from daemon.lanes import Lanes
from daemon.metrics import Metrics
from daemon.outage import Outage
from daemon.owed import Debts
from daemon.settings import WorkSettings
from daemon.stop import Stop
from daemon.systemd import Beats
from daemon.worker import Workers
from daemon.workplace import Workplace
from stages.stage import Children, Stage
from storage.audio import Store
from storage.claim import Claim, ClaimLost
from storage.claims import Claims, Passage, Settled
from storage.errors import DatabaseUnavailable
from storage.record import Milestone
from tests.builders import Written
from tests.model.fake_store import FakeClaims
from tests.model.stages import a_line
from tests.model.world import STORE, World

T = TypeVar("T")

LEASES: Final[Mapping[Milestone, float]] = {
    Milestone.CREATED: 40.0,
    Milestone.CONVERTED: 24.0,
    Milestone.TRANSCRIBE: 60.0,
}
FAILURES_LIMIT: Final = 3
EXIT_SECONDS: Final = 6.0
GRACE_SECONDS: Final = 4.0
CURRENT: Final[ContextVar["Process"]] = ContextVar("CURRENT")
# Making the numbers anew for each process would take longer than the rest of the run.
METRICS: Final = Metrics(("from_created", "from_converted", "from_transcribe"), ("convert", "whisper"))


class KilledError(BaseException):
    """The process is no more: nothing that is left of it may do anything."""


@frozen(kw_only=True)
class WatchedClaims(FakeClaims):
    """The claims of one process, whose calls end when it does; notes what becomes of its answers."""

    world: World
    process: "Process"
    unheard: dict[UUID, str] = field(factory=dict)

    async def settle(
        self, claim: Claim, ending: Written, passage: Passage, detail: Mapping[str, Any]
    ) -> Settled | ClaimLost:
        """Settle, and note what a lost answer came to."""
        world = self.world
        world.settled.add(claim.token)
        world.settling[claim.record_id] += 1
        try:
            settled = await super().settle(claim, ending, passage, detail)
        except DatabaseUnavailable:
            written = world.reference.has_ended(claim.token)
            self.unheard[claim.token] = "lost, and found" if written else "lost, and written when said again"
            raise
        finally:
            world.settling[claim.record_id] -= 1
        if isinstance(settled, ClaimLost):
            world.case(f"fenced at its settle: {world.how_lost(claim)}")
        elif claim.token in self.unheard:
            world.case(f"settle: {self.unheard.pop(claim.token)}")
        return settled

    async def give_back(self, token: UUID, why: str) -> bool:
        """Give back, and note what the claim was."""
        given = await super().give_back(token, why)
        events = [event for event in self.world.reference.events if event.token == token]
        if given:
            self.world.case(f"repaid: {self.process.owed_for(token)}")
        elif not events:
            self.world.case("owed: not made yet, or never")
        elif not events[-1].settles:
            how = self.world.how_lost(Claim(record_id=events[0].record_id, token=token))
            self.world.case(f"owed: {how} meanwhile")
        return given

    async def _call(self, verb: str, step: Callable[[], T]) -> T:
        process, world = self.process, self.world
        process.check()
        try:
            answer = await self.store.call(self.fate_of(verb), step)
        finally:
            if process.dead:
                world.case(f"died in its {verb}")
            world.ring()
        process.check()
        return answer


class _Folder:
    """An attempt's folder that is nowhere."""

    def rmdir(self) -> None:
        """Be removed."""


class _Shelf:
    """A store with no disk."""

    def path(self, relative: str) -> Path:
        """Name a file."""
        return Path("/nowhere", relative)

    async def sweep_attempts(self, record_id: UUID, keep: Collection[str]) -> None:
        """Remove nothing."""
        del record_id, keep
        await trio.lowlevel.checkpoint()

    async def attempt_folder(self, record_id: UUID, token: UUID) -> _Folder:
        """Make nothing."""
        del record_id, token
        await trio.lowlevel.checkpoint()
        return _Folder()


class Process:
    """One run of a daemon on a machine, whose owed folder outlives it."""

    def __init__(self, world: World, owed: Path, name: str) -> None:
        self.world, self.name = world, name
        self.dead = False
        self.gone = trio.Event()
        self._scope = trio.CancelScope()
        self._asked_at: float | None = None
        plan = world.plan
        self.settings = WorkSettings(
            workers=plan.workers,
            poll_seconds=9.0,
            failures_limit=FAILURES_LIMIT,
            first_retry_seconds=4.0,
            longest_retry_seconds=20.0,
            renew_seconds=8.0,
            settle_seconds=90.0,
            grace_seconds=GRACE_SECONDS,
            exit_seconds=EXIT_SECONDS,
        )
        self.claims = WatchedClaims(
            store=world.store,
            stores=(STORE,),
            claimed_by=name,
            failures_limit=FAILURES_LIMIT,
            leases=LEASES,
            fate_of=world.fate,
            world=world,
            process=self,
        )
        claims = cast("Claims", self.claims)
        self.line: tuple[Stage, ...] = a_line(world, self, LEASES)
        self.beats, self.bell, self.stop = Beats(), Bell(), Stop()
        self.lanes = Lanes(plan.slots, METRICS)
        outage = Outage(METRICS)
        self.debts = Debts(owed, until=trio.current_time() + max(LEASES.values()))
        self.inherited = frozenset(self.debts.open_at(0.0))
        self.keeper = Keeper(claims, self.debts, outage)
        attempts = Attempts(
            claims=claims,
            line=self.line,
            lanes=self.lanes,
            workplace=Workplace(store=cast("Store", _Shelf()), children=cast("Children", None)),
            settings=self.settings,
            stop=self.stop,
            outage=outage,
            metrics=METRICS,
        )
        self.workers = Workers(
            claims=claims,
            attempts=attempts,
            keeper=self.keeper,
            lanes=self.lanes,
            bell=self.bell,
            beats=self.beats,
            stop=self.stop,
            outage=outage,
            metrics=METRICS,
            settings=self.settings,
        )

    def check(self) -> None:
        """Let nothing be done by the dead."""
        if self.dead:
            raise KilledError

    def owed_for(self, token: UUID) -> str:
        """Tell why a give-back was owed."""
        return "from an earlier run" if token in self.inherited else "a claim whose answer was lost"

    def ask_to_stop(self, *, twice: bool) -> None:
        """Stop in good order."""
        self._asked_at = self._asked_at or self.world.now
        for _ in range(1 + twice):
            self.stop.ask("asked")

    def kill(self, why: str) -> None:
        """End at once; what is on the disk stays."""
        if self.dead:
            return
        self.dead = True
        if (
            self._asked_at is not None
            and self.world.now > self._asked_at + GRACE_SECONDS + EXIT_SECONDS + 0.01
        ):
            self.world.fault(f"{self.name} took more than its time to stop")
        self.world.trace(f"{self.name} dies: {why}")
        if any(row.claimed_by == self.name for row in self.world.rows.values()):
            self.world.case("died with a claim open")
        self.world.bells.remove(self.bell)
        self._scope.cancel()
        self.gone.set()

    async def run(self) -> None:
        """Run until it ends, in whatever way."""
        CURRENT.set(self)
        self.world.bells.append(self.bell)
        try:
            with self._scope:
                await self._rings()
        except BaseException as error:  # noqa: BLE001 - what ends a process is looked at, and goes no further
            if not self.dead and _leaves(error, SystemExit):
                self.world.case("crashed by an exit within")
            elif not self.dead:
                self.world.fault(f"{self.name} crashed: {error!r} {getattr(error, 'exceptions', '')}")
        self.kill("it has ended")

    async def _rings(self) -> None:
        async with trio.open_nursery() as exit_clock:
            exit_clock.start_soon(self.stop.end_hard, self.settings, self.keeper.owe)
            async with trio.open_nursery() as support:
                await support.start(self.lanes.probe, self.line)
                support.start_soon(self.keeper.keep, self.settings.renew_seconds)
                support.start_soon(self._ring_at_the_stop)
                async with trio.open_nursery() as work:
                    support.start_soon(self.stop.end_work, work.cancel_scope, GRACE_SECONDS)
                    for number in range(self.settings.workers):
                        work.start_soon(self.workers.work, f"worker {number}")
                self.keeper.owe()
                support.cancel_scope.cancel()
            exit_clock.cancel_scope.cancel()

    async def _ring_at_the_stop(self) -> None:
        await self.stop.wait()
        self.bell.ring()


def _leaves(error: BaseException, kind: type[BaseException]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(kind) is not None
    return isinstance(error, kind)

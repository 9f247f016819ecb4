"""A process of a simulated run: the real parts of a daemon on the fake store, and the ways it may end."""

from collections import Counter
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TypeVar, cast
from uuid import UUID

import trio

from daemon.attempt import Attempts
from daemon.bell import Bell
from daemon.keeper import Keeper
from daemon.lanes import Lanes
from daemon.metrics import Metrics
from daemon.outage import Outage
from daemon.owed import Debts
from daemon.parts import BEAT_MARGIN_SECONDS, MOST_CALLS_TO_A_BEAT
from daemon.settings import WorkSettings
from daemon.stop import Stop
from daemon.systemd import Beats
from daemon.worker import Workers
from daemon.workplace import Workplace
from stages.stage import Children, Stage
from storage.audio import Store
from storage.claims import Claims
from storage.record import Milestone
from tests.model.chance import CALL_SECONDS
from tests.model.stages import a_line
from tests.model.watched import KilledError, WatchedClaims
from tests.model.world import STORE, World

T = TypeVar("T")

LEASES: Final[Mapping[Milestone, float]] = {
    Milestone.CREATED: 40.0,
    Milestone.CONVERTED: 24.0,
    Milestone.TRANSCRIBE: 60.0,
}
EXIT_SECONDS: Final = 6.0
SETTLE_SECONDS: Final = 40.0
ENDED: Final = "it has ended"
ENDED_HARD: Final = "it ended hard"
IN_GOOD_ORDER: Final = (ENDED, ENDED_HARD)
GRACE_SECONDS: Final = 4.0
CURRENT: Final[ContextVar["Process"]] = ContextVar("CURRENT")
# Making the numbers anew for each process would take longer than the rest of the run.
_MARGIN: Final = BEAT_MARGIN_SECONDS + MOST_CALLS_TO_A_BEAT * CALL_SECONDS
METRICS: Final = Metrics(("from_created", "from_converted", "from_transcribe"), ("convert", "whisper"))


class _Folder:
    """An attempt's folder that is nowhere."""

    def rmdir(self) -> None:
        """Be removed."""


class _Shelf:
    """A store with no disk."""

    def path(self, relative: str) -> Path:
        """Name a file."""
        return Path("/nowhere", relative)

    async def sweep_attempts(self, record_id: UUID, keep: Collection[str], *, until: float) -> None:
        """Remove nothing."""
        del record_id, keep, until
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
        self.crashing = False
        self.at_work: Counter[str] = Counter()
        self.gone = trio.Event()
        self._scope = trio.CancelScope()
        self._asked_at: float | None = None
        plan = world.plan
        self.settings = WorkSettings(
            workers=plan.workers,
            poll_seconds=9.0,
            failures_limit=world.failures_limit,
            first_retry_seconds=4.0,
            longest_retry_seconds=20.0,
            renew_seconds=8.0,
            settle_seconds=SETTLE_SECONDS,
            grace_seconds=GRACE_SECONDS,
            exit_seconds=EXIT_SECONDS,
        )
        self.claims = WatchedClaims(
            store=world.store,
            stores=(STORE,),
            claimed_by=name,
            failures_limit=world.failures_limit,
            leases=LEASES,
            fate_of=world.fate,
            world=world,
            process=self,
        )
        claims = cast("Claims", self.claims)
        self.line: tuple[Stage, ...] = a_line(world, self, LEASES)
        self.beats, self.bell, self.stop = Beats(margin_seconds=_MARGIN), Bell(), Stop()
        self.lanes = Lanes(plan.slots, METRICS)
        outage = Outage(METRICS)
        self.debts = Debts(owed, now=trio.current_time(), patience=max(LEASES.values()))
        self.inherited = frozenset(self.debts.open_at(0.0))
        self.keeper = Keeper(claims, self.debts, outage, METRICS)
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
        if token not in self.inherited:
            return "a claim whose answer was lost"
        return "held when its process ended hard" if token in self.world.known else "from an earlier run"

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
        if why in IN_GOOD_ORDER:
            self._look_what_is_left()
        if any(row.claimed_by == self.name for row in self.world.rows.values()):
            self.world.case("died with a claim open")
        self.world.bells.remove(self.bell)
        self._scope.cancel()
        self.gone.set()

    def _look_what_is_left(self) -> None:
        """A claim that an orderly end leaves open is owed on the disk, unless it is spent."""
        owed = self.debts.open_at(0.0)
        for row in self.world.rows.values():
            token, known = row.claim_token, self.world.known
            if row.claimed_by != self.name or token is None or token not in known or token in owed:
                continue
            over = known[token].until < self.world.now  # as far as the process can know
            if (
                not over
                and not known[token].spent
                and not known[token].given_up(self.world.now, SETTLE_SECONDS)
            ):
                self.world.fault(f"{self.name} ended in good order, and left {token} open and not owed")

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
                self.kill("an exit within")
            elif not self.dead:
                self.world.fault(f"{self.name} crashed: {error!r} {getattr(error, 'exceptions', '')}")
        self.kill(ENDED)

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

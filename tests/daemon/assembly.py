"""Assembles the working half of a service, on real claims or in memory, with stages that do as told."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import UUID

import trio
from attrs import field, frozen

from daemon.attempt import Attempts
from daemon.bell import Bell
from daemon.keeper import Keeper
from daemon.lanes import Lanes
from daemon.metrics import NO_STAGE, Mark, Metrics
from daemon.outage import Outage
from daemon.owed import Debts
from daemon.parts import BEAT_MARGIN_SECONDS
from daemon.policy import Taken
from daemon.settings import WorkSettings
from daemon.stop import Stop
from daemon.systemd import Beats
from daemon.worker import Workers
from daemon.workplace import Workplace
from stages.stage import Children, Outcome, Reached, Stage, Tools
from storage.audio import Store
from storage.claims import Claims
from storage.record import Milestone, Record
from tests.builders import FAILURES_LIMIT, FOUND, LANES, NEXT, Queue
from tests.daemon.door import Door
from tests.daemon.memory import MemoryQueue

T = TypeVar("T")
Play = Callable[[Record, Tools], Awaitable[Outcome]]

# Tests wait for nothing that they do not mean.
SETTINGS = WorkSettings(
    workers=1,
    poll_seconds=1.0,
    failures_limit=FAILURES_LIMIT,
    first_retry_seconds=0.0,
    longest_retry_seconds=0.0,
    renew_seconds=10.0,
    settle_seconds=20.0,
    grace_seconds=0.0,
)


async def reach(record: Record, tools: Tools) -> Outcome:
    """Bring any record to its next milestone."""
    del tools
    return Reached(FOUND[record.milestone])


async def hang(record: Record, tools: Tools) -> Outcome:
    """Never end."""
    del record, tools
    await trio.sleep_forever()


def fail(error: BaseException) -> Play:
    """Return a stage's work that raises `error`."""

    async def play(record: Record, tools: Tools) -> Outcome:
        del record, tools
        await trio.lowlevel.checkpoint()
        raise error

    return play


def answer(outcome: object) -> Play:
    """Return a stage's work that comes to `outcome`."""

    async def play(record: Record, tools: Tools) -> Outcome:
        del record, tools
        await trio.lowlevel.checkpoint()
        return cast("Outcome", outcome)

    return play


async def nothing() -> None:
    """Find all means there."""


@frozen(kw_only=True)
class Told:
    """A stage that does as it is told."""

    takes: Milestone
    play: Play = reach
    means: Callable[[], Awaitable[None]] = nothing
    seconds: float = 600.0
    whole_seconds: float = 6000.0
    lease_seconds: float = 60.0

    @property
    def name(self) -> str:
        """As the log tells it."""
        return f"from_{self.takes}"

    @property
    def gives(self) -> Milestone:
        """The next milestone."""
        return NEXT[self.takes]

    @property
    def lane(self) -> str:
        """As the queues of the tests have it."""
        return str(LANES[self.takes])

    def time_limit(self, record: Record) -> float:
        """The same for all."""
        del record
        return self.seconds

    def milestone_limit(self, record: Record) -> float:
        """The same for all."""
        del record
        return self.whole_seconds

    async def work(self, record: Record, tools: Tools) -> Outcome:
        """Do as told."""
        return await self.play(record, tools)

    async def check_means(self) -> None:
        """Look as told."""
        await self.means()


def a_line(**changes: Any) -> tuple[Stage, ...]:
    """Return a whole line; `changes` are the first stage's."""
    others = (Told(takes=Milestone.CONVERTED), Told(takes=Milestone.TRANSCRIBE))
    return (Told(takes=Milestone.CREATED, **changes), *others)


class OwnThreadStore(Store):
    """Does its file work without a thread: virtual time would not wait for one."""

    async def in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        """Do it here."""
        await trio.lowlevel.checkpoint()
        return work(*arguments)


@frozen(kw_only=True)
class House:
    """The parts of one service, and its queue."""

    queue: Queue | MemoryQueue
    door: Door
    store: Store
    debts: Debts
    keeper: Keeper
    lanes: Lanes
    bell: Bell
    beats: Beats
    stop: Stop
    outage: Outage
    metrics: Metrics
    settings: WorkSettings
    attempts: Attempts
    workers: Workers
    _held: list[ExitStack] = field(factory=list, init=False)

    async def record(self, milestone: Milestone = Milestone.CREATED, **columns: Any) -> UUID:
        """Make a record with its folder in the store."""
        record_id = await self.queue.record(milestone, **columns)
        self.store.record_folder(record_id).mkdir()
        self.store.source(record_id).write_bytes(b"RIFF")
        return record_id

    async def take(self) -> Taken:
        """Claim a record that must be there; it is held until the end of the test."""
        self._held.append(ExitStack())
        look = await self.workers.look(self._held[-1])
        assert isinstance(look, Taken)
        return look

    async def attempt(self) -> Taken:
        """Claim a record that must be there, and work it."""
        with ExitStack() as keeping:
            look = await self.workers.look(keeping)
            assert isinstance(look, Taken)
            await self.attempts.run(look)
            return look

    @asynccontextmanager
    async def serving(
        self, workers: int | None = None, *, keeping: bool = False
    ) -> AsyncIterator[trio.Nursery]:
        """Have workers (and the keeper) at work until a stop: asked for at the block's end if not before.

        The block stands in the support ring, and is given the work ring.
        """
        over = trio.Event()
        async with trio.open_nursery() as support:
            if keeping:
                support.start_soon(self.keeper.keep, self.settings.renew_seconds)
            support.start_soon(self._ring_at_the_stop)
            yield await support.start(self._work, workers or self.settings.workers, over)
            if not self.stop.asked:
                self.stop.ask("the test is over")
            await over.wait()
            support.cancel_scope.cancel()

    async def _work(self, workers: int, over: trio.Event, task_status: trio.TaskStatus[trio.Nursery]) -> None:
        async with trio.open_nursery() as beside:
            async with trio.open_nursery() as work:
                beside.start_soon(self.stop.end_work, work.cancel_scope, self.settings.grace_seconds)
                for number in range(workers):
                    work.start_soon(self.workers.work, f"worker {number}")
                task_status.started(work)
            over.set()
            beside.cancel_scope.cancel()

    async def _ring_at_the_stop(self) -> None:
        await self.stop.wait()
        self.bell.ring()

    def marks(self) -> dict[str, int]:
        """Return how many attempts ended with each mark."""
        counted: Counter[str] = Counter()
        for mark in Mark:
            for stage in self.attempts.line:
                counted[mark] += int(self.metrics.value("rubezh_attempts_total", stage=stage.name, mark=mark))
        counted[Mark.LOST] += int(self.metrics.value("rubezh_attempts_total", stage=NO_STAGE, mark=Mark.LOST))
        return {str(mark): number for mark, number in counted.items() if number}


def a_house(
    queue: Queue | MemoryQueue,
    folder: Path,
    line: Sequence[Stage] | None = None,
    *,
    settings: WorkSettings = SETTINGS,
    slots: Mapping[str, int] | None = None,
) -> House:
    """Put the parts together, in a state folder of the test's own."""
    stages = tuple(line or a_line())
    metrics = Metrics((stage.name for stage in stages), {stage.lane for stage in stages})
    kind = Store if isinstance(queue, Queue) else OwnThreadStore
    store = kind(id=queue.store, root=folder / "store")
    for needed in (folder / "store", folder / "owed"):
        needed.mkdir(exist_ok=True)
    store.prepare()
    door = Door(queue.claims)
    claims = cast("Claims", door)
    beats, bell, outage, stop = Beats(margin_seconds=BEAT_MARGIN_SECONDS), Bell(), Outage(metrics), Stop()
    lanes = Lanes(slots or {"convert": 4, "whisper": 4}, metrics)
    debts = Debts(folder / "owed", now=trio.current_time(), patience=max(claims.leases.values()))
    keeper = Keeper(claims, debts, outage, metrics)
    attempts = Attempts(
        claims=claims,
        line=stages,
        lanes=lanes,
        workplace=Workplace(store=store, children=cast("Children", None)),
        settings=settings,
        stop=stop,
        outage=outage,
        metrics=metrics,
    )
    workers = Workers(
        claims=claims,
        attempts=attempts,
        keeper=keeper,
        lanes=lanes,
        bell=bell,
        beats=beats,
        stop=stop,
        outage=outage,
        metrics=metrics,
        settings=settings,
    )
    return House(
        queue=queue,
        door=door,
        store=store,
        debts=debts,
        keeper=keeper,
        lanes=lanes,
        bell=bell,
        beats=beats,
        stop=stop,
        outage=outage,
        metrics=metrics,
        settings=settings,
        attempts=attempts,
        workers=workers,
    )

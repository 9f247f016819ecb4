"""Lanes: how many attempts of a kind may run here at once, and whether what they need is there at all.

A slot is held from the claim until the attempt's child is dead. A lane whose means are away is closed after
its first failures, with one line in the log, and opened again by a probe: an outage that concerns everybody
must not stop a whole queue record by record.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import structlog
import trio

from daemon.metrics import Metrics
from stages.stage import Stage
from storage.daemons import LaneSign
from storage.errors import MeansAway

log = structlog.get_logger()

FAILURES_TO_CLOSE = 2
FIRST_PROBE_SECONDS = 2.0
LONGEST_PROBE_SECONDS = 60.0


class Lane:
    """One lane's slots and breaker."""

    def __init__(self, name: str, slots: int, metrics: Metrics) -> None:
        """Begin open, with every slot free."""
        self.name = name
        self.slots = slots
        self.busy = 0
        self.closed_because: str | None = None
        self._metrics = metrics
        self._failures = 0

    @property
    def is_free(self) -> bool:
        """True when an attempt may start here now."""
        return self.closed_because is None and self.busy < self.slots

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold one slot for the length of an attempt."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    @property
    def sign(self) -> LaneSign:
        """What is told of it to those who ask why a record waits."""
        return LaneSign(name=self.name, slots=self.slots, busy=self.busy, closed_because=self.closed_because)

    def worked(self) -> None:
        """An attempt came to an outcome of its own: the means are there."""
        self._failures = 0

    def lacked(self, error: MeansAway) -> None:
        """An attempt found the means away; the first few failures close the lane."""
        self._failures += 1
        if self._failures >= FAILURES_TO_CLOSE:
            self.close(str(error))

    def close(self, because: str) -> None:
        """Let nothing start here until `open`; told once."""
        if self.closed_because is None:
            log.error("lane.closed", lane=self.name, reason=because)
        self.closed_because = because
        self._metrics.lane_closed(self.name, closed=True)

    def open(self) -> None:
        """Let attempts start again."""
        self._failures = 0
        if self.closed_because is not None:
            log.info("lane.opened", lane=self.name)
        self.closed_because = None
        self._metrics.lane_closed(self.name, closed=False)

    def _count(self, change: int) -> None:
        self.busy += change
        self._metrics.slots_busy(self.name, self.busy)


class Lanes:
    """Every lane of this process."""

    def __init__(self, slots: Mapping[str, int], metrics: Metrics) -> None:
        """Make a lane for each name, with so many slots."""
        self._lanes = {name: Lane(name, number, metrics) for name, number in slots.items()}

    def __getitem__(self, name: str) -> Lane:
        """Return the lane of that name; KeyError when this process has none."""
        return self._lanes[name]

    def free(self) -> list[str]:
        """Return the names of the lanes in which an attempt may start now."""
        return [lane.name for lane in self._lanes.values() if lane.is_free]

    def closed(self) -> dict[str, str]:
        """Return why, for each lane that is closed."""
        return {
            lane.name: lane.closed_because for lane in self._lanes.values() if lane.closed_because is not None
        }

    def signs(self) -> tuple[LaneSign, ...]:
        """Return what is told of each."""
        return tuple(lane.sign for lane in self._lanes.values())

    async def probe(
        self, stages: Sequence[Stage], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Check the means of every lane once before work begins, then those of each closed lane, for ever."""
        needing: dict[str, list[Stage]] = {}
        for stage in stages:
            needing.setdefault(stage.lane, []).append(stage)
        for name, those in needing.items():
            await _probe_once(self[name], those)
        task_status.started()
        async with trio.open_nursery() as nursery:
            for name, those in needing.items():
                nursery.start_soon(_keep_probing, self[name], those)


async def _keep_probing(lane: Lane, stages: Sequence[Stage]) -> None:
    pause = FIRST_PROBE_SECONDS
    while True:
        await trio.sleep(pause)
        if lane.closed_because is None:
            continue
        await _probe_once(lane, stages)
        away = lane.closed_because is not None
        pause = min(pause * 2, LONGEST_PROBE_SECONDS) if away else FIRST_PROBE_SECONDS


async def _probe_once(lane: Lane, stages: Sequence[Stage]) -> None:
    """Open the lane if every stage in it has its means, else close it."""
    try:
        for stage in stages:
            await stage.check_means()
    except MeansAway as error:
        lane.close(str(error))
    else:
        lane.open()

"""Whole services on a virtual clock, under every fault: one seed is one run, and the same run each time.

`python -m tests.model.simulation SEED` replays a run and prints it; with a COUNT after the seed it runs as
many seeds from there on and prints what they came to, as JSON.
"""

import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch
from uuid import UUID

import structlog
import trio
from attrs import frozen
from trio._core import _run as scheduler
from trio.testing import MockClock

from storage.record import Milestone, StopCode
from tests.model import history
from tests.model.chance import Deed, a_plan
from tests.model.fake_store import FakeStore
from tests.model.simulated import CURRENT, ENDED_HARD, Process
from tests.model.world import World

# The longest lease, the longest pause of a probe, the farthest jumps of a clock, a settle's patience, work.
BOUND_SECONDS: Final = 60 + 60 + 120 + 40 + 200
LIFTED_SHARE: Final = 0.5  # of what is stopped when the faults are over
LOOK_SECONDS: Final = 4.0
SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the folder made in it is our own


@frozen(kw_only=True)
class Run:
    """What a seed came to; `digest` is the same when it is run again."""

    seed: int
    faults: list[str]
    cases: Counter[str]
    digest: str
    lines: list[str]


class Machine:
    """Where one process runs at a time, and is started again when it ends."""

    def __init__(self, world: World, number: int, owed: Path) -> None:
        self._world, self._owed = world, owed
        self._name = f"machine {number}"
        self._runs = 0
        self.process: Process | None = None

    async def run(self) -> None:
        """Have a process run, for as long as the world lasts."""
        world = self._world
        async with trio.open_nursery() as nursery:
            while not world.over:
                self._runs += 1
                self.process = Process(world, self._owed, f"{self._name}, run {self._runs}")
                nursery.start_soon(self.process.run)
                await self.process.gone.wait()
                await trio.sleep(1.0 if world.calm else world.chance.uniform(0.5, 50.0))

    def do(self, what: str) -> None:
        """Let somebody end it."""
        if self.process is None or self.process.dead:
            return
        if what == "kill":
            self.process.kill("killed")
        else:
            self.process.ask_to_stop(twice=what == "hurried stop")


def run(seed: int, *, keep_lines: bool = False) -> Run:
    """Run one seed."""
    chance = random.Random(seed)  # noqa: S311 - it must come again
    folder = Path(tempfile.mkdtemp(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))
    try:
        with _scheduled_by(seed):
            world = trio.run(_live, chance, folder, keep_lines, clock=MockClock(autojump_threshold=0))
    finally:
        shutil.rmtree(folder)
    return Run(
        seed=seed, faults=world.faults, cases=world.cases, digest=world.digest, lines=world.lines or []
    )


@contextmanager
def _scheduled_by(seed: int) -> Iterator[None]:
    """Have Trio take its tasks in an order that comes again, by the only way it has for that."""
    chance = scheduler._r  # noqa: SLF001 - Trio lets tests seed it
    before = chance.getstate()
    chance.seed(seed)
    with patch.object(scheduler, "_ALLOW_DETERMINISTIC_SCHEDULING", new=True):
        yield
    chance.setstate(before)


async def _live(chance: random.Random, folder: Path, keep_lines: bool) -> World:  # noqa: FBT001 - called here alone
    world = World(plan=a_plan(chance), chance=chance, store=FakeStore(), lines=[] if keep_lines else None)
    world.trace(str(world.plan))
    machines = []
    for number in range(world.plan.machines):
        owed = folder / str(number)
        owed.mkdir()
        machines.append(Machine(world, number, owed))
    with _in_place_of_the_real(world):
        async with trio.open_nursery() as nursery:
            for machine in machines:
                nursery.start_soon(machine.run)
            nursery.start_soon(_watch, world, machines)
            await _chaos(world, machines)
            world.calm = True
            world.trace("the faults are over")
            for record_id in [each for each, row in world.rows.items() if row.stop_code is not None]:
                if chance.random() < LIFTED_SHARE:
                    world.person("lift", list(world.rows).index(record_id))
            await _until_all_have_ended(world)
            world.over = True
            for machine in machines:
                machine.do("stop")
    _judge(world)
    return world


@contextmanager
def _in_place_of_the_real(world: World) -> Iterator[None]:
    """Have ids come from the seed, the log go into the trace, and a hard exit end one process of many."""
    before = structlog.get_config()
    structlog.configure(processors=[world.log], wrapper_class=structlog.BoundLogger)
    ends_one = SimpleNamespace(_exit=lambda _: CURRENT.get().kill(ENDED_HARD))
    try:
        with patch("daemon.worker.uuid4", world.uuid), patch("daemon.stop.os", ends_one):
            yield
    finally:
        structlog.configure(**before)


async def _chaos(world: World, machines: list[Machine]) -> None:
    plan = world.plan
    coming = [Deed(at=at, what="accept", on=0) for at in plan.arrivals]
    for deed in sorted([*coming, *plan.deeds], key=lambda deed: deed.at):
        await trio.sleep(max(deed.at - world.now, 0.0))
        person = deed.what.removeprefix("person: ")
        if deed.what == "accept":
            world.accept()
        elif deed.what == "jump":
            held = any(row.claim_token for row in world.rows.values())
            world.case(
                f"clock set {'forward' if deed.seconds > 0 else 'back'}{' under a claim' if held else ''}"
            )
            world.store.set_clock(deed.seconds)
        elif person != deed.what:
            world.person(person, deed.on)
        else:
            machines[deed.on].do(deed.what)
    await trio.sleep(max(plan.chaos_seconds - world.now, 0.0))


async def _watch(world: World, machines: list[Machine]) -> None:
    """See that nobody hangs, as systemd would."""
    while not world.over:
        for process in [machine.process for machine in machines]:
            # One that crashes beside a stage that heeds no cancel is rightly found silent.
            if process is not None and not process.dead and not process.crashing:
                for name in process.beats.silent():
                    world.fault(f"{process.name}: {name} broke its promise")
        await trio.sleep(LOOK_SECONDS)


async def _until_all_have_ended(world: World) -> None:
    until = world.now + BOUND_SECONDS
    while True:
        world.store.catch_up()
        waiting = [record_id for record_id, row in world.rows.items() if row.in_work]
        if not waiting:
            return
        if world.now > until:
            for record_id in waiting:
                world.fault(f"{record_id} has not come to its end: {world.rows[record_id]}")
            return
        await trio.sleep(LOOK_SECONDS)


def _judge(world: World) -> None:
    """Look at what is left, and at what the history says."""
    events = world.reference.events
    slack = world.plan.set_back_seconds + 0.001
    world.faults += history.faults(events, slack_seconds=slack)
    _judge_stops(world)
    standings = history.standings(events)
    if len(world.rows) != len(world.plan.arrivals):
        world.fault(f"of {len(world.plan.arrivals)} records there are {len(world.rows)}")
    for record_id, row in world.rows.items():
        standing = standings[record_id]
        if (standing.milestone, standing.count) != (row.milestone, row.failures):
            world.fault(f"{record_id} is {row}, its history says {standing}")
        if row.milestone is Milestone.DONE and row.recognised_text != "found":
            world.fault(f"{record_id} is done with the text {row.recognised_text!r}")


def _judge_stops(world: World) -> None:
    """What was stopped for its failures had as many as it may have, and one claim more, at the least."""
    claimed: dict[UUID | None, int] = {}
    for event in world.reference.events:
        if event.kind == "claimed":
            claimed[event.token] = event.detail["failures"]
        exhausted = event.detail.get("code") == StopCode.ATTEMPTS_EXHAUSTED
        if exhausted and claimed[event.token] <= world.failures_limit:
            world.fault(f"{event.record_id} was stopped as exhausted at claim {claimed[event.token]}")


def _many(first: int, count: int) -> dict[str, object]:
    cases: Counter[str] = Counter()
    faults: list[str] = []
    for seed in range(first, first + count):
        done = run(seed)
        cases += Counter(dict.fromkeys(done.cases, 1))
        faults += [f"seed {seed}, {fault}" for fault in done.faults]
    return {"seeds": count, "faults": faults, "cases": dict(sorted(cases.items()))}


def main() -> None:
    """Replay one seed, or run many."""
    seed, *count = map(int, sys.argv[1:])
    if count:
        json.dump(_many(seed, *count), sys.stdout)
        return
    done = run(seed, keep_lines=True)
    sys.stdout.write("\n".join([*done.lines, f"digest {done.digest}", *done.faults, ""]))
    sys.exit(1 if done.faults else 0)


if __name__ == "__main__":
    main()

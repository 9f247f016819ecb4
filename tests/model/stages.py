"""Stages that come to every end there is, as chance has it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve, frozen

from stages.stage import Outcome, Stage, Tools
from storage.ending import Deferred, Hopeless, Reached
from storage.errors import MeansAway, StageFailed
from storage.record import Findings, Milestone, Record, StopCode
from tests.builders import FOUND, LANES, NEXT, advance, conversion, segment
from tests.model.world import Running, World

if TYPE_CHECKING:
    from tests.model.simulated import Process

TIME_LIMIT: Final = 40.0
MILESTONE_LIMIT: Final = 100.0
UNSTORABLE: Final[Mapping[Milestone, Findings]] = {
    Milestone.CREATED: conversion("records/\0"),
    Milestone.CONVERTED: evolve(conversion(), audio_path="\0"),
    Milestone.TRANSCRIBE: advance(segment(0, "found"), evolve(segment(1, "reversed"), start=9.0, end=1.0)),
}


@frozen(kw_only=True)
class ChanceStage:
    """One stage of the line, in one process."""

    world: World
    process: "Process"
    takes: Milestone
    lease_seconds: float

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
        """As the line of the service has it."""
        return str(LANES[self.takes])

    def time_limit(self, record: Record) -> float:
        """Return the seconds of an attempt."""
        del record
        return TIME_LIMIT

    def milestone_limit(self, record: Record) -> float:
        """Return the seconds at a milestone."""
        del record
        return MILESTONE_LIMIT

    async def check_means(self) -> None:
        """Look whether the means are there."""
        await trio.lowlevel.checkpoint()
        if self.world.lane_away(self.lane):
            raise MeansAway(f"{self.lane} is away, says its probe")

    async def work(self, record: Record, tools: Tools) -> Outcome:
        """Come to some end."""
        world, chance = self.world, self.world.chance
        [what] = chance.choices(list(world.plan.behaviours), list(world.plan.behaviours.values()))
        if world.calm:
            what = "reach"
        running = Running(tools.token, fenced=what != "be stubborn")
        world.begins(record.id, running)
        if record.claim_token != tools.token:
            world.fault(f"{tools.token} works on a record as {record.claim_token} holds it")
        if record.failures > world.failures_limit:
            world.fault(f"{record.id} was given to its stage after {record.failures - 1} failures")
        self.process.at_work[self.lane] += 1
        if self.process.at_work[self.lane] > world.plan.slots[self.lane]:
            world.fault(f"{self.process.name} works on more records in {self.lane} than it has slots")
        world.trace(f"{self.process.name} works on {record.id} at {record.milestone}: {what}")
        try:
            await trio.sleep(chance.uniform(0.2, 8.0))
            if world.lane_away(self.lane):
                raise MeansAway(f"{self.lane} is away, says an attempt")
            return await self._end(what, record)
        finally:
            self.process.at_work[self.lane] -= 1
            world.ends(record.id, running)

    async def _end(self, what: str, record: Record) -> Outcome:  # noqa: C901, PLR0911, PLR0912 - one case an end
        chance, found = self.world.chance, FOUND[record.milestone]
        match what:
            case "reach":
                return Reached(found)
            case "defer":
                return Deferred(chance.choice((0.0, 3.0, 12.0)), found, "so far")
            case "defer for long":
                return Deferred(chance.choice((50.0, 80.0, 150.0)), found, "so far")
            case "fail":
                raise chance.choice((StageFailed, ValueError))("it failed")
            case "hang":
                await trio.sleep_forever()
            case "be stubborn":
                with trio.CancelScope(shield=True):
                    await trio.sleep(chance.uniform(5.0, 90.0))
                return Reached(found)
            case "be unclean":
                try:
                    await trio.sleep(chance.uniform(5.0, 60.0))
                finally:
                    if chance.random() < 0.7:
                        raise OSError("it could not clean up")
                return Reached(found)
            case "find it hopeless":
                return Hopeless(StopCode.NO_AUDIO, "no sound")
            case "find what cannot be stored":
                return Reached(UNSTORABLE[record.milestone])
            case "take the process down":
                self.process.kill("a stage took it down")
                await trio.sleep_forever()
            case "exit":
                self.process.crashing = True
                raise SystemExit(1)
            case _:
                pass
        raise AssertionError(what)


def a_line(world: World, process: "Process", leases: Mapping[Milestone, float]) -> tuple[Stage, ...]:
    """Return the line of one process."""
    return tuple(
        ChanceStage(world=world, process=process, takes=takes, lease_seconds=seconds)
        for takes, seconds in leases.items()
    )

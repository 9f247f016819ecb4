"""One daemon of the torture: the real service with three quick stages that do all a stage may do.

`python -m tests.torture.daemon SETTINGS`: what a stage does with a record is drawn anew for every attempt.
"""

import random
import sys
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from daemon.journal import configure
from daemon.service import serve
from daemon.settings import Settings, load_settings
from stages.stage import Deferred, Hopeless, Outcome, Reached, Stage, Tools
from storage.errors import StageFailed
from storage.folder import StateFolder
from storage.record import Advance, Conversion, Milestone, OperationBegun, Record, Segment, StopCode

CHANCE: Final = random.Random()  # noqa: S311 - a lot is drawn, no secret kept
SLICES: Final = 3
LIMIT_SECONDS: Final = 4.0
FAILS, HANGS, HOPELESS = 0.03, 0.002, 0.001  # shares of all attempts
LONGEST_WORK = 0.08


@frozen
class Quick:
    """A stage that works a moment, and sometimes does not come to its end."""

    takes: Milestone
    gives: Milestone
    lane: str
    lease_seconds: float

    @property
    def name(self) -> str:
        """Return what it does."""
        return f"to_{self.gives}"

    def time_limit(self, record: Record) -> float:
        """Let a hung attempt end by its limit soon."""
        del record
        return LIMIT_SECONDS

    def milestone_limit(self, record: Record) -> float:
        """Let faults be the only reason to stop."""
        del record
        return 10_000.0

    async def check_means(self) -> None:
        """Need nothing."""

    async def work(self, record: Record, tools: Tools) -> Outcome:
        """Work, and write what this stage writes."""
        await trio.sleep(CHANCE.random() * LONGEST_WORK)
        fate = CHANCE.random()
        if fate < FAILS:
            raise StageFailed("drawn by lot")
        if fate < FAILS + HANGS:
            await trio.sleep_forever()
        if fate < FAILS + HANGS + HOPELESS:
            return Hopeless(StopCode.RECOGNISER_REFUSED, "drawn by lot")
        return self._outcome(record, tools)

    def _outcome(self, record: Record, tools: Tools) -> Outcome:
        if self.takes is Milestone.CREATED:
            copy = tools.folder / "audio.w64"
            copy.write_bytes(tools.source.read_bytes())
            return Reached(
                Conversion(
                    audio_path=tools.publish(copy),
                    declared_seconds=None,
                    decoded_seconds=float(SLICES),
                    audio_warnings=(),
                )
            )
        if self.takes is Milestone.CONVERTED:
            return Reached(OperationBegun(recogniser="torture", operation={"next": 0}))
        assert record.operation is not None
        now: int = record.operation["next"]
        said = Segment(slice=now, number=0, start=now, end=now + 1, text=f"{record.filename}:{now}")
        step = Advance(
            operation={"next": now + 1},
            recognised_seconds=now + 1.0,
            found_language=None,
            segments=(said,),
        )
        return Reached(step) if now + 1 == SLICES else Deferred(CHANCE.choice((0.0, 0.0, 0.05)), step)


def line_of(settings: Settings, folder: StateFolder) -> tuple[Stage, ...]:
    """Return the quick line."""
    del folder
    order = list(Milestone)
    lanes = ("convert", "whisper", "whisper")
    lease = settings.convert.lease_seconds
    return tuple(
        Quick(takes, gives, lane, lease)
        for takes, gives, lane in zip(order[:-1], order[1:], lanes, strict=True)
    )


if __name__ == "__main__":
    configure("json", "info")

    async def run() -> None:
        """Serve without doors: the driver submits by itself."""
        await serve(load_settings(Path(sys.argv[1])), doors=False, line_of=line_of)

    trio.run(run)

"""The real service with three brisk stages, which fail and hang at random until all is calm.

`python -m tests.torture.service FILE FOLDER SECONDS PARENT`: FILE is a settings file; a file `calm` in FOLDER
ends the whims; SECONDS is how far off this daemon's clock is; PARENT is the process it must not outlive.
"""

import errno
import os
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

_OFF_BY = float(sys.argv[3])
_TRUE_TIME, _TRUE_TIME_NS = time.time, time.time_ns
# Ahead of every import that could take the true one by name.
time.time = lambda: _TRUE_TIME() + _OFF_BY
time.time_ns = lambda: _TRUE_TIME_NS() + int(_OFF_BY * 1e9)

import trio  # noqa: E402 - the clock first
from attrs import frozen  # noqa: E402 - the clock first

from daemon.journal import configure  # noqa: E402 - the clock first
from daemon.service import serve  # noqa: E402 - the clock first
from daemon.settings import load_settings  # noqa: E402 - the clock first
from stages.stage import Deferred, Hopeless, Outcome, Reached, Stage, Tools  # noqa: E402 - the clock first
from storage.errors import MeansAway, StageFailed, Unavailable  # noqa: E402 - the clock first
from storage.lifeline import die_with_parent  # noqa: E402 - the clock first
from storage.record import (  # noqa: E402 - the clock first
    Advance,
    Conversion,
    Milestone,
    OperationBegun,
    Record,
    Segment,
    StopCode,
)
from tests.torture.terms import UNAVAILABLE  # noqa: E402 - the clock first

ATTEMPT_SECONDS = 1.5
CHANCE = random.Random()  # noqa: S311 - whims are no secret
WHIMS = (
    ("dawdle", 0.03),
    ("raise", 0.02),
    ("err", 0.01),
    ("hang", 0.01),
    ("lack", 0.004),
    ("give up", 0.004),
)

Work = Callable[[Record, Tools], Awaitable[Outcome]]


async def convert(record: Record, tools: Tools) -> Outcome:
    """Copy the source, durably."""
    del record
    said = tools.source.read_bytes()
    copy = tools.folder / "audio.w64"
    try:
        with copy.open("wb") as file:
            file.write(said.upper())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise MeansAway("the disk is full") from error
        raise
    found = Conversion(
        audio_path=tools.publish(copy), declared_seconds=None, decoded_seconds=1.0, audio_warnings=()
    )
    return Reached(found)


async def begin(record: Record, tools: Tools) -> Outcome:
    """Read from the copy how many slices there are."""
    del record
    return Reached(OperationBegun(recogniser="whisper", operation={"slices": _heard(tools)[1], "next": 0}))


async def advance(record: Record, tools: Tools) -> Outcome:
    """Recognise one slice: its text is its name."""
    name, slices = _heard(tools)
    assert record.operation is not None
    at = int(record.operation["next"])
    found = Advance(
        operation={"slices": slices, "next": at + 1},
        recognised_seconds=float(at + 1),
        found_language="en",
        segments=(Segment(slice=at, number=0, start=float(at), end=at + 1.0, text=f"{name}.{at}"),),
        anew=False,
    )
    return Reached(found) if at + 1 == slices else Deferred(CHANCE.choice((0, 0, 0.05)), found)


def _heard(tools: Tools) -> tuple[str, int]:
    assert tools.audio is not None
    word, name, slices = tools.audio.read_text("ascii").split()
    assert word == "RECORD", word
    return name, int(slices)


@frozen(kw_only=True)
class Brisk:
    """A stage that is quick, when it is in the mood."""

    name: str
    takes: Milestone
    gives: Milestone
    lane: str
    lease_seconds: float
    does: Work
    calm: Path

    def time_limit(self, record: Record) -> float:
        """Little."""
        del record
        return ATTEMPT_SECONDS

    def milestone_limit(self, record: Record) -> float:
        """Never the reason here."""
        del record
        return 36_000.0

    async def check_means(self) -> None:
        """Need nothing."""

    async def work(self, record: Record, tools: Tools) -> Outcome:
        """Do it, unless a whim comes first."""
        whim = None if self.calm.exists() else _a_whim()
        await trio.sleep(CHANCE.uniform(0, 0.02))
        match whim:
            case "raise":
                raise StageFailed("a whim")
            case "err":
                raise ValueError("a whim")
            case "dawdle":
                await trio.sleep(0.8)
            case "hang":
                await trio.sleep_forever()
            case "lack":
                raise MeansAway("a whim")
            case "give up":
                return Hopeless(StopCode.SILENT, "a whim")
            case _:
                pass
        return await self.does(record, tools)


def _a_whim() -> str | None:
    dice = CHANCE.random()
    for whim, share in WHIMS:
        dice -= share
        if dice < 0:
            return whim
    return None


def brisk_line(lease_seconds: float, calm: Path) -> tuple[Stage, ...]:
    """Return the whole line."""
    parts: tuple[tuple[str, Milestone, Milestone, str, Work], ...] = (
        ("convert", Milestone.CREATED, Milestone.CONVERTED, "convert", convert),
        ("begin", Milestone.CONVERTED, Milestone.TRANSCRIBE, "whisper", begin),
        ("advance", Milestone.TRANSCRIBE, Milestone.DONE, "whisper", advance),
    )
    return tuple(
        Brisk(
            name=name, takes=takes, gives=gives, lane=lane, lease_seconds=lease_seconds, does=does, calm=calm
        )
        for name, takes, gives, lane, does in parts
    )


def main() -> None:
    """Serve until a signal, or until the torture is gone; exit with a code of its own without a database."""
    die_with_parent(int(sys.argv[4]), signal.SIGKILL)
    configure("json", "warning")
    settings, calm = load_settings(Path(sys.argv[1])), Path(sys.argv[2]) / "calm"

    async def run() -> None:
        await serve(settings, line_of=lambda *_: brisk_line(settings.convert.lease_seconds, calm))

    away = False
    try:
        trio.run(run)
    except* Unavailable as group:
        sys.stderr.write(f"{group.exceptions}\n")
        away = True
    if away:
        sys.exit(UNAVAILABLE)


if __name__ == "__main__":
    main()

"""The real service whose recogniser reads from a script instead of listening, at its own pace.

`python -m tests.panel.reading_service FILE`: FILE is a settings file. Two seconds of a recording become two
segments in each claim. A recording whose file name begins with `stubborn` is refused, until it is lifted.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import trio
from attrs import define, field

from daemon.journal import configure
from daemon.line import build_line
from daemon.service import serve
from daemon.settings import Settings, load_settings
from stages.advance_recognition import AdvanceRecognition
from stages.begin_recognition import BeginRecognition
from stages.recognisers.recogniser import Finished, InProgress
from stages.stage import Hopeless, Stage, Tools
from storage.folder import StateFolder
from storage.record import Record, Segment, StopCode, Word

SCRIPT = (
    "Every recording passes its milestones in order.",
    "Запись проходит свои рубежи по порядку.",
    "Nothing that was accepted is ever lost.",
    "Принятая запись не теряется никогда.",
)
STEP_SECONDS = 2.0


@define
class Reader:
    """Reads a sentence for each second of a recording."""

    name: str = "whisper"
    pause_seconds: float = 0.25
    refused: set[UUID] = field(factory=set)

    async def begin(self, record: Record, tools: Tools) -> dict[str, Any] | Hopeless:
        """Begin at the first sentence."""
        del record, tools
        return {"at": 0.0}

    async def advance(
        self, record: Record, operation: dict[str, Any], tools: Tools
    ) -> InProgress | Finished | Hopeless:
        """Read on."""
        del tools
        if record.filename.startswith("stubborn") and record.id not in self.refused:
            self.refused.add(record.id)
            return Hopeless(StopCode.RECOGNISER_REFUSED, "the reader will not read this, the first time")
        await trio.sleep(self.pause_seconds)
        at, whole = operation["at"], record.decoded_seconds or 0.0
        until = min(at + STEP_SECONDS, whole)
        found: dict[str, Any] = {
            "operation": {"at": until},
            "recognised_seconds": until,
            "found_language": "en",
            "segments": tuple(_sentence(second, whole) for second in range(int(at), max(int(until), 1))),
        }
        if until >= whole:
            return Finished(**found)
        return InProgress(**found, delay=0.0, state="reading")

    def time_limit(self, record: Record) -> float:
        """Never the reason here."""
        del record
        return 600.0

    def whole_limit(self, record: Record) -> float:
        """Never the reason here."""
        del record
        return 6000.0

    async def check_means(self) -> None:
        """Need nothing."""


def _sentence(second: int, whole: float) -> Segment:
    said = SCRIPT[second % len(SCRIPT)].split()
    start, end = float(second), min(second + 1.0, whole)
    step = (end - start) / len(said)
    words = tuple(
        Word(start=start + n * step, end=start + (n + 1) * step, text=f" {word}", probability=0.9)
        for n, word in enumerate(said)
    )
    return Segment(slice=second, number=0, start=start, end=end, text=" " + " ".join(said), words=words)


def main() -> None:
    """Serve until a signal."""
    configure("json", "debug")
    settings = load_settings(Path(sys.argv[1]))

    def line_of(settings: Settings, folder: StateFolder) -> tuple[Stage, ...]:
        convert, *_ = build_line(settings, folder)
        lease = settings.whisper.lease_seconds
        reader = Reader()
        return (
            convert,
            BeginRecognition(recogniser=reader, lease_seconds=lease),
            AdvanceRecognition(recogniser=reader, lease_seconds=lease),
        )

    trio.run(partial(serve, settings, line_of=line_of))


if __name__ == "__main__":
    main()

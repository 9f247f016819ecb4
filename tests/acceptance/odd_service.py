"""The real service with one stage of the test's own in its line.

`python -m tests.acceptance.odd_service FILE KIND`: FILE is a settings file; KIND names what the converting
stage does instead of its work.
"""

import os
import signal
import sys
from pathlib import Path

import trio
from attrs import frozen

from daemon.journal import configure
from daemon.line import build_line
from daemon.service import serve
from daemon.settings import Settings, load_settings
from stages.stage import Outcome, Reached, Stage, Tools
from storage.folder import StateFolder
from storage.record import Conversion, Milestone, Record


@frozen
class Odd:
    """Takes the place of the converting stage."""

    kind: str
    lease_seconds: float
    name: str = "odd"
    takes: Milestone = Milestone.CREATED
    gives: Milestone = Milestone.CONVERTED
    lane: str = "convert"

    def time_limit(self, record: Record) -> float:
        """Never the reason here."""
        del record
        return 600.0

    def milestone_limit(self, record: Record) -> float:
        """Never the reason here."""
        del record
        return 6000.0

    async def check_means(self) -> None:
        """Need nothing."""

    async def work(self, record: Record, tools: Tools) -> Outcome:
        """Do what the kind says."""
        del record
        match self.kind:
            case "deadly":
                os.kill(os.getpid(), signal.SIGKILL)
            case "endless":
                await trio.sleep_forever()
            case "short":
                await trio.sleep(1.0)
            case "failing":
                raise ValueError("this stage always fails")
            case _:
                pass
        copy = tools.folder / "audio.w64"
        copy.write_bytes(b"nobody reads this")
        return Reached(
            Conversion(
                audio_path=tools.publish(copy), declared_seconds=None, decoded_seconds=1.0, audio_warnings=()
            )
        )


def main() -> None:
    """Serve until a signal."""
    configure("json", "debug")
    file, kind = sys.argv[1:]

    def line_of(settings: Settings, folder: StateFolder) -> tuple[Stage, ...]:
        _, *others = build_line(settings, folder)
        return (Odd(kind, settings.convert.lease_seconds), *others)

    async def run() -> None:
        await serve(load_settings(Path(file)), line_of=line_of)

    trio.run(run)


if __name__ == "__main__":
    main()

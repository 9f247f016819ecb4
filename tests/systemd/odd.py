"""The service as it is installed, but for one oddity: `python -m tests.systemd.odd KIND`."""

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import trio
from attrs import frozen

from daemon import parts
from daemon.bell import Bell
from daemon.cli import main
from daemon.keeper import Keeper
from daemon.line import build_line
from daemon.service import serve
from daemon.settings import Settings
from stages.stage import Outcome, Reached, Stage, Tools
from storage.database import Database
from storage.folder import StateFolder
from storage.record import Conversion, Milestone, Record
from tests.systemd.probe import probe


@frozen
class Odd:
    """Takes the place of the converting stage."""

    kind: str
    folder: Path
    lease_seconds: float
    name: str = "odd"
    takes: Milestone = Milestone.CREATED
    gives: Milestone = Milestone.CONVERTED
    lane: str = "convert"

    def time_limit(self, record: Record) -> float:
        """Never the reason, but where the worker is to be missed soon."""
        del record
        return 0.2 if self.kind == "stuck" else 600.0

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
            case "blocking":
                time.sleep(600)  # noqa: ASYNC251 - that is what is odd
            case "stuck":
                with trio.CancelScope(shield=True):
                    await trio.sleep_forever()
            case "probing":
                found = await trio.to_thread.run_sync(probe, self.folder)
                (self.folder / "probe.json").write_text(json.dumps(found))
            case _:
                pass
        copy = tools.folder / "audio.w64"
        copy.write_bytes(b"nobody reads this")
        return Reached(
            Conversion(
                audio_path=tools.publish(copy), declared_seconds=None, decoded_seconds=1.0, audio_warnings=()
            )
        )


async def keep_nothing(keeper: Keeper, seconds: float) -> NoReturn:
    """Promise to be back, and never be."""
    keeper._promise(seconds)  # noqa: SLF001 - a keeper that died in the middle of its work
    await trio.sleep_forever()
    raise AssertionError


async def hear_nothing(bell: Bell, _: Database) -> NoReturn:
    """Promise to be back, and never be."""
    bell._promise(1.0)  # noqa: SLF001 - a bell that died in the middle of its work
    await trio.sleep_forever()
    raise AssertionError


def line_of(kind: str, settings: Settings, folder: StateFolder) -> tuple[Stage, ...]:
    """Make the line with the odd stage in it."""
    _, *others = build_line(settings, folder)
    return (Odd(kind, folder.path, settings.convert.lease_seconds), *others)


if __name__ == "__main__":
    (kind,) = sys.argv[1:]
    # Nobody here can wait for as long as a service owner, and this database answers at once.
    patch.object(parts, "BEAT_MARGIN_SECONDS", 2.0).start()
    patch.object(parts, "MOST_CALLS_TO_A_BEAT", 0).start()
    match kind:
        case "deaf":
            patch.object(Bell, "listen", hear_nothing).start()
        case "careless":
            patch.object(Keeper, "keep", keep_nothing).start()
        case _:
            odd_serve = partial(serve, line_of=partial(line_of, kind))
            patch("daemon.cli.serve.serve", odd_serve).start()
    sys.argv = ["rubezh", "serve"]
    main()

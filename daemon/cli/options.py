"""What every command that opens the state folder takes: `--config`, `--state`, `-v`."""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TextIO

import click
import structlog
from structlog.typing import EventDict

from daemon.journal import configure
from daemon.settings import load_settings

Command = Callable[..., int | None]  # what it takes are the options and arguments that click was told of


class NamedPath(click.Path):
    """A path that may not be empty: an unset variable of a shell must not come to mean "here"."""

    def __init__(self) -> None:
        """Leave it to the command to look at what is there, and to word what is wrong."""
        super().__init__(path_type=Path, readable=False)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path; an empty one is wrong use."""
        if value == "":
            self.fail("an empty name names nothing", param, ctx)
        return super().convert(value, param, ctx)


def with_settings(command: Command) -> Command:
    """Give a command the settings as its first argument, and set up what it says on stderr."""

    @click.option(
        "--config",
        metavar="FILE",
        type=NamedPath(),
        help="Read this file of settings.",
    )
    @click.option(
        "--state",
        metavar="FOLDER",
        type=NamedPath(),
        help="Use this state folder.",
    )
    @click.option("-v", "--verbose", is_flag=True, help="Say on stderr what is being done.")
    @wraps(command)
    def settled(*, config: Path | None, state: Path | None, verbose: bool, **others: object) -> int | None:
        log_for_a_person(verbose=verbose)
        return command(load_settings(config, state=state), **others)

    return settled


def log_for_a_person(*, verbose: bool, stream: TextIO | None = None) -> None:
    """Log warnings, or everything, on `stream` (stderr if there is none)."""
    configure("console", "info" if verbose else "warning", stream=stream)
    if not verbose:
        structlog.configure(processors=[_without_details, *structlog.get_config()["processors"]])


def _without_details(_logger: object, _method: str, entry: EventDict) -> EventDict:
    """Leave out what a command tells by itself, and the tracebacks of what will be tried again."""
    if entry["event"] == "record.stopped" or entry.get("library") == "psycopg.pool":
        raise structlog.DropEvent
    if entry["event"] == "record.failed":
        entry.pop("exc_info", None)
    return entry

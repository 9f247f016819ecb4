"""What every command that opens the state folder takes: `--config`, `--state`, `-v`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path

import click

from daemon.journal import Level, configure
from daemon.settings import load_settings

Command = Callable[..., int | None]  # what it takes are the options and arguments that click was told of


def with_settings(command: Command) -> Command:
    """Give a command the settings as its first argument, and set up what it says on stderr."""

    @click.option("--config", type=click.Path(path_type=Path), help="Read this file of settings.")
    @click.option("--state", type=click.Path(path_type=Path), help="Use this state folder.")
    @click.option("-v", "--verbose", is_flag=True, help="Say on stderr what is being done.")
    @wraps(command)
    def settled(*, config: Path | None, state: Path | None, verbose: bool, **others: object) -> int | None:
        configure("console", level(verbose=verbose))
        return command(load_settings(config, state=state), **others)

    return settled


def level(*, verbose: bool) -> Level:
    """Return what a command says on stderr: warnings, or all it does."""
    return "info" if verbose else "warning"

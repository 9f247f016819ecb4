"""`rubezh serve`: the service itself."""

from typing import get_args

import click
import trio

from daemon.cli.options import with_settings
from daemon.journal import Style, configure
from daemon.service import serve
from daemon.settings import Settings


@click.command(name="serve")
@click.option(
    "--log",
    "style",
    type=click.Choice(get_args(Style)),
    default="auto",
    show_default=True,
    help="How to log; auto is the journal under systemd, else lines on stderr.",
)
@with_settings
def command(settings: Settings, *, style: Style) -> None:
    """Run the service until it is told to stop.

    SIGTERM and SIGINT end it: what is being worked on is given back and goes on at the next start.
    """
    verbose = click.get_current_context().params["verbose"]
    configure(style, "debug" if verbose else "info")
    trio.run(serve, settings)

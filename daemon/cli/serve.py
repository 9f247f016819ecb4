"""`rubezh serve`: the service itself."""

import faulthandler
import signal
import sys
from functools import partial
from typing import get_args

import click
import trio

from daemon.cli.options import with_settings
from daemon.hardening import refuse_new_code
from daemon.journal import Style, configure
from daemon.service import serve
from daemon.settings import Settings, load_settings


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
    SIGHUP has it read its settings again; from a terminal that was closed, it ends it.
    """
    given = click.get_current_context().params
    configure(style, "debug" if given["verbose"] else "info")
    faulthandler.enable()  # where a watchdog ends it by SIGABRT, the log has what it was at
    refuse_new_code()
    if sys.stdin is not None and sys.stdin.isatty():
        trio.run(serve, settings)
        return
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is somebody to hear it
    trio.run(partial(serve, settings, reread=partial(load_settings, given["config"], state=given["state"])))

"""`rubezh serve`: the service itself."""

import click
import trio

from daemon.cli.options import with_settings
from daemon.journal import configure
from daemon.service import serve
from daemon.settings import Settings


@click.command(name="serve")
@with_settings
def command(settings: Settings) -> None:
    """Run the service until it is told to stop.

    SIGTERM and SIGINT end it: what is being worked on is given back and goes on at the next start.
    """
    verbose = click.get_current_context().params["verbose"]
    configure("auto", "debug" if verbose else "info")
    trio.run(serve, settings)

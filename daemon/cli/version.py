"""`rubezh version`."""

from importlib.metadata import PackageNotFoundError, version

import click

from daemon.cli.words import put


@click.command(name="version")
def command() -> None:
    """Tell the version."""
    try:
        found = version("rubezh")
    except PackageNotFoundError:
        found = "(run from its source, not installed)"
    put(f"rubezh {found}\n")

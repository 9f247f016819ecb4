"""The command line: `rubezh`."""

from daemon.cli.program import main

__all__ = ["main"]

"""`rubezh serve FILE` with its log as JSON lines, which a test can read."""

import sys
from functools import partial
from pathlib import Path

import trio

from daemon.journal import configure
from daemon.service import serve
from daemon.settings import load_settings

if __name__ == "__main__":
    configure("json", "debug")
    trio.run(partial(serve, load_settings(Path(sys.argv[1]))))

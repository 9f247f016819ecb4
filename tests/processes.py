"""Looking at real processes: who is there, and waiting for what they do with a deadline."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

DEADLINE_SECONDS = 20.0
NOBODY = 65534
CHECKOUT = Path(__file__).parents[1]


def is_alive(pid: int) -> bool:
    """Tell whether a process is there and more than a name waiting to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def eventually(happened: Callable[[], bool], what: str) -> None:
    """Wait until something has happened, in a program of its own; fail after a deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:g} s: {what}"
        time.sleep(0.01)


def plain_python() -> list[str]:
    """Return the words that start Python as a plain user, with our packages; skips where no such user can."""
    if os.geteuid() != 0:
        return [sys.executable]
    packages = Path(trio.__file__).parents[1]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    ours, system = Path(sys.executable), Path("/usr/bin") / version  # ours may be below a private home
    python = next((str(python) for python in (ours, system) if python.exists() and _passable(python)), None)
    if python is None or not _passable(packages) or not _passable(CHECKOUT):
        pytest.skip("a plain user can reach no Python here that has our packages")
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [*become, "env", f"PYTHONPATH={CHECKOUT}:{packages}", python]


def _passable(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in (path.resolve(), *path.resolve().parents))

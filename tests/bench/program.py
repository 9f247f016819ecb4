"""`rubezh transcribe` as one would run it, in a state folder of its own, all its processes accounted for."""

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from tests.bench.audio import LANGUAGE, write_joined

_PR_SET_CHILD_SUBREAPER = 36
LONGEST_SECONDS = 4 * 3600.0
SHORT_SECONDS = 1.5


@frozen(kw_only=True)
class Cost:
    """What a command took, with all its descendants, in seconds; and what it printed."""

    cpu: float
    wall: float
    printed: str


def transcription(state: Path, recording: Path) -> list[str]:
    """Return the command that transcribes a recording."""
    program = "import sys; from daemon.cli import main; sys.exit(main())"
    return [
        sys.executable,
        "-c",
        program,
        "transcribe",
        "--state",
        str(state),
        "--language",
        LANGUAGE,
        str(recording),
    ]


@contextmanager
def prepared_state() -> Iterator[Path]:
    """A folder with `state` in it: database and model are made, so that no round pays for them."""
    with tempfile.TemporaryDirectory(prefix="rubezh-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # as root PostgreSQL runs as another user
        write_joined(folder / "first.wav", 15, 1)
        run_accounted(transcription(folder / "state", folder / "first.wav"))
        yield folder


def run_accounted(command: Sequence[str]) -> Cost:
    """Run a command to its end, and that of every process it started; raises when it fails."""
    adopt_orphans()
    used, began = _used(), time.perf_counter()
    done = subprocess.run(
        command, check=False, capture_output=True, timeout=LONGEST_SECONDS, text=True, env=environment()
    )
    reap_orphans()
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return Cost(cpu=_used() - used, wall=time.perf_counter() - began, printed=done.stdout)


def environment() -> dict[str, str]:
    """Return the environment that both sides run in: libraries that call nobody."""
    return {**os.environ, "ORT_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1"}


def adopt_orphans() -> None:
    """Have every process that outlives its parent become a child of ours, or its time would be lost."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "this process cannot adopt orphans")


def reap_orphans() -> None:
    """Wait for all that is left of what was started."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

"""Whatever is done to daemons, database and disk: nothing is lost, doubled, overwritten or stranded."""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import CHECKOUT

AFTERWARDS = 240  # seconds for the start, for calm and for the judgement


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the server's user may pass through, with a short name."""
    with tempfile.TemporaryDirectory(prefix="rt-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.mark.timeout(60 + 2 * AFTERWARDS)
def test_a_minute_of_torture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The share of it that every run carries."""
    counts = torture(folder, capsys, seconds=60, seed=int(os.environ.get("RUBEZH_SEED", "1")))
    assert counts["kill -9"] >= 5
    assert counts["zombies"] >= 2
    assert counts["claims whose order was decided"] > 0


@pytest.mark.deep
def test_half_an_hour_of_torture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole of it."""
    seed = random.SystemRandom().randrange(10**6)
    counts = torture(folder, capsys, seconds=1800, seed=seed)
    assert counts["records"] >= 20_000
    assert counts["kill -9"] >= 500
    assert counts["zombies"] >= 100


def torture(folder: Path, capsys: pytest.CaptureFixture[str], *, seconds: float, seed: int) -> dict[str, int]:
    """Torture for so long and have it judged; show what was done, and return the counts."""
    words = [sys.executable, "-m", "tests.torture", str(folder), str(seconds), str(seed)]
    # To measure what daemons cover would slow them down, and a killed one tells nothing.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    ran = subprocess.run(
        words,
        cwd=CHECKOUT,
        env=kept,
        capture_output=True,
        text=True,
        timeout=seconds + AFTERWARDS,
        check=False,
    )
    *table, last = ran.stdout.splitlines() or [""]
    assert last.startswith("{"), ran.stderr[-5000:]
    told = json.loads(last)
    with capsys.disabled():
        sys.stdout.write("\n".join(["", f"{seconds:g} s of torture, seed {seed}:", *table, ""]))
    assert told["faults"] == []
    assert ran.returncode == 0, ran.stderr[-5000:]
    counts: dict[str, int] = told["counts"]
    return counts

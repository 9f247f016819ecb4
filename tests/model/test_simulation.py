"""Whole services, run on a virtual clock under every fault, lose, double and strand nothing."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.model.cases import REQUIRED
from tests.model.simulation import run

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = os.cpu_count() or 1


def at_once(first: int, count: int) -> None:
    """Run seeds in processes of their own, a share each; nothing may be wrong, and every case be reached."""
    # What the runs cover is covered elsewhere too, and measuring it would take longer than the runs.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    share = count // PROCESSES
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.model.simulation", str(first + share * number), str(share)],
            cwd=ROOT,
            env=quiet,
            stdout=subprocess.PIPE,
        )
        for number in range(PROCESSES)
    ]
    faults: list[str] = []
    reached: Counter[str] = Counter()
    for child in started:
        said, _ = child.communicate()
        assert child.returncode == 0
        outcome = json.loads(said)
        faults += outcome["faults"]
        reached += Counter(outcome["cases"])
    assert not faults, "replay each with `python -m tests.model.simulation SEED`"
    assert not REQUIRED - reached.keys(), "these were never reached, so nothing is shown of them"


@pytest.mark.timeout(600)
def test_no_seed_finds_a_fault() -> None:
    """Two thousand runs, always the same ones."""
    at_once(0, 2000)


@pytest.mark.deep
def test_no_new_seed_finds_a_fault() -> None:
    """A hundred thousand runs, other ones each time."""
    at_once(int.from_bytes(os.urandom(6), "big"), 100_000)


def test_a_seed_is_one_run() -> None:
    """A run comes out the same again, also in another process, whose hashes are others."""
    digests = [run(seed).digest for seed in range(20)]
    assert [run(seed).digest for seed in range(20)] == digests
    for seed in range(3):
        command = [sys.executable, "-m", "tests.model.simulation", str(seed)]
        replayed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert f"digest {digests[seed]}" in replayed.stdout

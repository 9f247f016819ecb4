"""Runs tests on copies of the project, in which a fault may be planted."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from tests.conftest import OUTER
from tests.mutants.planted import Edit
from tests.processes import CHECKOUT

PARTS = ("daemon", "stages", "storage", "tests", "pyproject.toml")
SECONDS = 120
_ALL_FAILED = re.compile(r"\d+ failed in .*")


@frozen
class Outcome:
    """How a run of tests ended: `failed` is whether a test ran and did not hold."""

    code: int
    said: str

    @property
    def passed(self) -> bool:
        """True when every test held."""
        return self.code == 0

    @property
    def failed(self) -> bool:
        """True when a test ran and failed: an error on the way to it, or none found, is something else."""
        return self.code == 1 and _ALL_FAILED.fullmatch(self.said.splitlines()[-1]) is not None


def run_tests(folder: Path, cluster: str, edits: Sequence[Edit], *nodes: str) -> Outcome:
    """Copy the project into `folder`, plant what `edits` say, run tests there on the cluster of this run.

    Raises AssertionError when an edit no longer finds what it changes.
    """
    folder.mkdir()
    for part in PARTS:
        if (CHECKOUT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(CHECKOUT / part, folder / part, copy_function=os.link, ignore=ignored)
        else:
            shutil.copy(CHECKOUT / part, folder / part)
    for edit in edits:
        _plant(folder / edit.file, edit)
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *nodes]
    ran = subprocess.run(
        command,
        cwd=folder,
        env=_environment(cluster),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    shutil.rmtree(folder)
    return Outcome(ran.returncode, ran.stdout + ran.stderr)


def _plant(file: Path, edit: Edit) -> None:
    text = file.read_text("utf-8")
    found = text.count(edit.old)
    assert found == edit.times, f"{edit.file} has {edit.old!r} {found} times, not {edit.times}"
    file.unlink()  # it is the checkout's own file by another name
    file.write_text(text.replace(edit.old, edit.new), "utf-8")


def _environment(cluster: str) -> dict[str, str]:
    """Return what a run of tests is told: our cluster, and nothing of how this run is measured."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    return kept | {OUTER: cluster}

"""Whoever runs make on an unprepared machine is told in a sentence what is missing."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("cat", "cut", "flock", "grep", "id", "make", "pwd", "sh", "sha256sum")
NOBODY = 65534


@pytest.fixture
def checkout(reachable: Path) -> Iterator[Path]:
    """What make reads, in a folder of a plain user's own, beside the tools of a machine without Python."""
    folder = reachable / "checkout"
    (folder / "bin").mkdir(parents=True)
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (folder / "bin" / name).symlink_to(found)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "locks", folder / "locks")
    yield folder
    shutil.rmtree(folder)


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as a plain user, who is not root even where the tests are."""
    return subprocess.run(
        [str(folder / "bin/make"), *arguments],
        cwd=folder,
        env={"PATH": str(folder / "bin"), "HOME": str(folder)},
        user=NOBODY if os.getuid() == 0 else None,
        extra_groups=[] if os.getuid() == 0 else None,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("target", ["run", "test", "venv"])
def test_without_python_a_user_is_told_what_to_install(checkout: Path, target: str) -> None:
    """One sentence with cause and remedy, make's exit code 2, and nothing half made."""
    if os.getuid() == 0:
        os.chown(checkout, NOBODY, NOBODY)
    done = make(checkout, target)
    ours = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
    assert done.returncode == 2
    assert len(ours) == 1
    assert "apt-get install python3-venv" in ours[0]
    assert not (checkout / ".venv").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a folder that is somebody else's")
def test_somebody_elses_folder_is_left_alone(checkout: Path) -> None:
    """In a folder one may not write in, make says so and tries nothing."""
    done = make(checkout, "venv")
    assert done.returncode == 2
    assert "this folder is not yours to write in" in done.stderr
    assert not (checkout / ".venv.lock").exists()

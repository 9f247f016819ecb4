"""The wheel holds the whole of the three packages and nothing else."""

import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("daemon", "storage", "stages")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """The wheel, built as a packager would: from the sources alone, with no network."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for package in (*PACKAGES, "tests"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-index"]
    subprocess.run(
        [*command, "--no-deps", "--no-build-isolation", "--wheel-dir", str(source), str(source)],
        check=True,
        timeout=100,
    )
    (built,) = source.glob("rubezh-*-py3-none-any.whl")
    return ZipFile(built)


def test_wheel_holds_every_file_of_the_packages(wheel: ZipFile) -> None:
    """Code, SQL, migrations and what else lies beside them: what works here works installed."""
    ours = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert any(name.startswith("storage/migrations/") for name in packed)
    assert packed == ours


def test_wheel_gives_the_command(wheel: ZipFile) -> None:
    """Installing it gives the command `rubezh`, and the licence comes with it."""
    (entry_points,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    declared = ConfigParser()
    declared.read_string(wheel.read(entry_points).decode())
    assert dict(declared["console_scripts"]) == {"rubezh": "daemon.cli:main"}
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())

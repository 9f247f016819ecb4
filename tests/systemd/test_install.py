"""`make install` places files alone; standing at the place they were made for, they are the service."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.systemd.installed import ROOT
from tests.systemd.private import PrivateSystemd, need_systemd, private_systemd

PLACED = "/var/lib/placed"
SAMPLE = "/usr/lib/rubezh/sample.opus"
MANUAL = (ROOT / "docs" / "operators.md").read_text("utf-8")

# Half a gigabyte is written, which a busy disk takes its time for.
pytestmark = [pytest.mark.root, pytest.mark.model, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def placed(reachable: Path) -> Iterator[Path]:
    """An empty folder that everything was installed into."""
    need_systemd()
    folder = reachable / "placed"
    subprocess.run(
        ["make", "install", f"DESTDIR={folder}", "PREFIX=/usr"],
        cwd=ROOT,
        check=True,
        timeout=300,
        capture_output=True,
    )
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def machine(placed: Path) -> Iterator[PrivateSystemd]:
    """A machine where these files are at their places, and where nothing was done yet."""
    shutil.copy(ROOT / "tests/samples/milestone.opus", placed / SAMPLE[1:])
    with private_systemd({"/usr/lib/rubezh": placed / "usr/lib/rubezh", PLACED: placed}) as booted:
        small = f"cd {PLACED}; find usr -path usr/lib/rubezh -prune -o ! -type d -print"
        booted.run("sh", "-euc", f"{small} | tar -cT - | tar -xC /")
        yield booted


def test_the_files_name_their_place_and_no_other(placed: Path) -> None:
    """Neither the folder they were put into nor the one they were made in."""
    named = [
        str(path.relative_to(placed))
        for path in sorted(placed.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 2**20
        for text in [path.read_bytes()]
        if os.fsencode(placed) in text or (os.fsencode(ROOT) in text and path.suffix != ".so")
    ]
    assert named == []
    assert sorted(path.name for path in placed.iterdir()) == ["usr"]
    assert str((placed / "usr/bin/rubezh").readlink()) == "../lib/rubezh/venv/bin/rubezh"
    programs = sorted(path.name for path in (placed / "usr/lib/rubezh/venv/bin").iterdir())
    assert [name for name in programs if not name.startswith("python")] == ["rubezh"]
    assert all(path.stat().st_mode & 0o777 in (0o644, 0o755) for path in placed.rglob("*") if path.is_file())


def test_s_o24_the_installed_command_runs_from_its_final_place(machine: PrivateSystemd) -> None:
    """By the commands that operators are told, which are five with the installation itself."""
    section = re.split(r"^### Under systemd$", MANUAL, flags=re.MULTILINE)[1]
    commands = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[0].strip().splitlines()
    assert len(commands) == 5
    assert commands[0].startswith("make install PREFIX=/usr ")
    assert machine.run("rubezh", "version").strip()
    for command in commands[1:]:
        machine.run("sh", "-euc", command)
    assert machine.show("rubezh.service", "ActiveState") == {"ActiveState": "active"}
    as_rubezh = ("runuser", "-u", "rubezh", "--", "env", "XDG_CONFIG_HOME=/etc", "XDG_STATE_HOME=/var/lib")
    assert "milestone" in machine.run(*as_rubezh, "rubezh", "transcribe", "--language", "en", SAMPLE).lower()
    assert "FAULT" not in machine.run(*as_rubezh, "rubezh", "doctor")
    assert "Subject: Rubezh: service.started" in machine.run("journalctl", "-x", "-u", "rubezh")
    assert machine.run("systemd-analyze", "verify", "rubezh.service", "rubezh.socket") == ""
    assert "rubezh.toml" in machine.run("man", "-w", "rubezh.toml")


def test_uninstalling_leaves_nothing_of_ours(placed: Path, reachable: Path) -> None:
    """Not a file; what is somebody else's beside ours stays."""
    other = reachable / "uninstalled"
    subprocess.run(["cp", "-al", str(placed), str(other)], check=True, timeout=60)
    theirs = other / "usr/lib/systemd/system/theirs.service"
    theirs.touch()
    subprocess.run(["make", "uninstall", f"DESTDIR={other}", "PREFIX=/usr"], cwd=ROOT, check=True, timeout=60)
    assert [path for path in other.rglob("*") if not path.is_dir()] == [theirs]
    shutil.rmtree(other)


@pytest.mark.parametrize(
    "wrong", ["PREFIX=usr", "PREFIX=/usr/", "PREFIX=", "DESTDIR=here", "PREFIX=/proc/none"]
)
def test_a_place_that_cannot_be_one_is_refused(wrong: str) -> None:
    """In one sentence, before anything is made."""
    done = subprocess.run(
        ["make", "install", wrong], cwd=ROOT, check=False, capture_output=True, text=True, timeout=60
    )
    (told,) = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert done.returncode == 2
    assert told.startswith("rubezh: ")

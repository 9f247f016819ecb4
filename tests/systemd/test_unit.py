"""The unit: systemd understands it, and leaves the daemon the time and the restarts its rules need."""

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from daemon.settings import Settings
from daemon.stop import exit_budget
from tests.systemd.private import PrivateSystemd, cannot_run

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "systemd" / "rubezh.service"
SYSUSERS = ROOT / "systemd" / "rubezh.sysusers"
UNITS_OF_TIME = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


@pytest.fixture(scope="module")
def unit() -> configparser.ConfigParser:
    """The unit as read; its keys keep their case, as systemd has it."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as configparser's own docs have it
    parser.read_string(UNIT.read_text("utf-8"))
    return parser


def environment() -> set[str]:
    """Return every variable that the unit sets; configparser keeps only the last line of a key."""
    lines = re.findall(r"^Environment=(.*)$", UNIT.read_text("utf-8"), re.MULTILINE)
    return {variable for line in lines for variable in line.split()}


def seconds(span: str) -> float:
    """Read a time span as systemd writes it."""
    parts = re.findall(r"(\d+)\s*(ms|s|min|h)", span)
    assert "".join(number + name for number, name in parts) == span.replace(" ", ""), span
    return sum(int(number) * UNITS_OF_TIME[name] for number, name in parts)


def test_systemd_finds_no_fault(machine: PrivateSystemd) -> None:
    """`systemd-analyze verify` says nothing at all: it ends well also over keys it does not know."""
    said = machine.run("sh", "-euc", "systemd-analyze verify rubezh.service rubezh.socket 2>&1")
    assert said == ""


def test_it_is_exposed_to_next_to_nothing(machine: PrivateSystemd) -> None:
    """By systemd's own measure, which goes from 0 to 10, half a point is never reached."""
    machine.run("systemd-analyze", "security", "--threshold=5", UNIT.name)


def test_systemd_makes_the_user(tmp_path: Path, unit: configparser.ConfigParser) -> None:
    """The user that the unit names is the one that sysusers makes, at home in the state folder."""
    if not shutil.which("systemd-sysusers") or os.geteuid() != 0:
        cannot_run("needs systemd-sysusers and root")
    (tmp_path / "etc").mkdir()
    subprocess.run(["systemd-sysusers", f"--root={tmp_path}", str(SYSUSERS)], check=True, timeout=60)
    (line,) = (tmp_path / "etc/passwd").read_text("utf-8").splitlines()
    name, _, uid, _, _, home, shell = line.split(":")
    assert (name, home, shell) == (unit["Service"]["User"], "/var/lib/rubezh", "/usr/sbin/nologin")
    assert 0 < int(uid) < 1000, "a system user"


def test_a_stop_has_the_time_it_may_take(unit: configparser.ConfigParser) -> None:
    """Nobody who keeps to the exit budget is killed; who does not is not waited for much longer."""
    budget = exit_budget(Settings().work)
    allowed = seconds(unit["Service"]["TimeoutStopSec"])
    assert budget < allowed <= budget + 30


def test_only_the_daemon_is_told_to_stop(unit: configparser.ConfigParser) -> None:
    """A SIGTERM to all would end decoder and database before anything is given back."""
    assert unit["Service"]["KillMode"] == "mixed"


def test_a_crash_loop_reaches_the_stop_flag(unit: configparser.ConfigParser) -> None:
    """Starts are not counted: a record that takes the daemon down is claimed until its failures run out."""
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["Restart"] == "on-failure"
    assert seconds(unit["Service"]["RestartSec"]) > 0


def test_what_cannot_be_used_is_not_tried_again(unit: configparser.ConfigParser) -> None:
    """A wrong setting ends with 2: the same start again would say the same."""
    assert unit["Service"]["RestartPreventExitStatus"] == "2"


def test_libraries_call_nobody() -> None:
    """No telemetry of the runtime, no look for models on the network."""
    assert {"ORT_DISABLE_TELEMETRY=1", "HF_HUB_OFFLINE=1"} <= environment()

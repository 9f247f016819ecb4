"""The units, as systemd has loaded them."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from daemon.doctor.finding import Finding, fault, note, ok
from daemon.settings import Settings
from daemon.stop import exit_budget

_BOOTED = Path("/run/systemd/system")
_SERVICE, _SOCKET = "rubezh.service", "rubezh.socket"
_SECONDS = 10.0
_ASKED = (
    *("Id", "LoadState", "UnitFileState", "ActiveState", "Result", "NeedDaemonReload"),
    *("NRestarts", "TimeoutStopUSec"),
)


def check_units(settings: Settings) -> Iterator[Finding]:
    """Look at the service and its socket; where no systemd runs there is nothing to look at."""
    systemctl = shutil.which("systemctl")
    if systemctl is None or not _BOOTED.is_dir():
        yield note(
            "units", "this machine was not started by systemd", "nothing to do: rubezh serve is the service"
        )
        return
    command = [systemctl, "show", *(f"--property={name}" for name in _ASKED), _SERVICE, _SOCKET]
    try:
        asked = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        yield fault(
            "units", f"systemd does not answer ({error})", "see whether it is overloaded: systemctl status"
        )
        return
    service, units = parse(asked.stdout).get(_SERVICE, {}), parse(asked.stdout)
    yield from judge_service(service, settings)
    if _SOCKET in units:
        yield from judge_socket(units[_SOCKET], service)


def parse(shown: str) -> dict[str, dict[str, str]]:
    """Return the properties of each unit by its name."""
    units = [
        dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        for block in shown.split("\n\n")
    ]
    return {unit["Id"]: unit for unit in units if "Id" in unit}


def judge_service(unit: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    """Say whether the service is installed, alive, and given the time that its settings need."""
    if unit.get("LoadState") == "not-found":
        yield note(
            "units",
            f"{_SERVICE} is not installed",
            "nothing to do where rubezh serve is run by hand; else make install",
        )
        return
    state = unit.get("ActiveState", "unknown")
    told = f"{_SERVICE} is {state} and {unit.get('UnitFileState') or 'not enabled'}"
    if state == "failed":
        yield fault(
            "units",
            f"{told} ({unit.get('Result')})",
            "its log has the sentence: journalctl -u rubezh -n 50; then systemctl restart rubezh",
        )
    elif (restarts := int(unit.get("NRestarts") or 0)) > 0:
        yield note(
            "units", f"{told}, started again {restarts} times", "see why: journalctl -u rubezh -p warning"
        )
    else:
        yield ok("units", told)
    if unit.get("NeedDaemonReload") == "yes":
        yield fault("units", "a unit file was changed since systemd read it", "systemctl daemon-reload")
    allowed, needed = span(unit.get("TimeoutStopUSec", "")), exit_budget(settings.work)
    if allowed is not None and allowed < needed:
        yield fault(
            "units",
            f"a stop may take {needed:g} s by the settings of work, and systemd allows {allowed:g} s",
            f"systemctl edit rubezh, and there: [Service] TimeoutStopSec={needed:.0f}s",
        )


def judge_socket(unit: Mapping[str, str], service: Mapping[str, str]) -> Iterator[Finding]:
    """Say whether the doors are held open by systemd."""
    if unit.get("LoadState") == "not-found":
        return
    state = unit.get("ActiveState", "unknown")
    if state == "active":
        yield ok("units", f"{_SOCKET} is active: a restart refuses nobody")
    elif service.get("ActiveState") == "active" or state == "failed":
        yield fault(
            "units",
            f"{_SOCKET} is {state}, so the doors are closed while the service is away",
            f"systemctl stop rubezh; systemctl start {_SOCKET} rubezh",
        )
    else:
        yield note(
            "units", f"{_SOCKET} is {state}", "start both: systemctl enable --now rubezh.socket rubezh"
        )


def span(shown: str) -> float | None:
    """Return a time span of systemd's in seconds; None for "infinity" and for what is none."""
    units = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
    seconds = 0.0
    for part in shown.split():
        number = part.rstrip("abcdefghijklmnopqrstuvwxyz")
        unit = part[len(number) :]
        if not number or unit not in units:
            return None
        seconds += float(number) * units[unit]
    return seconds if shown else None

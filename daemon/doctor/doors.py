"""The doors: whether a running service answers, and whether one that is to be started can have them."""

import http.client
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from daemon.doctor.finding import Finding, fault, note, ok
from daemon.settings import Settings
from storage.folder import StateFolder

HANDED_OVER = Path("/run/rubezh/rubezh.sock")  # as systemd/rubezh.socket has it
_SECONDS = 5.0
_LONGEST_PATH = 107


class _OverUnixSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("rubezh", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))


def check_doors(settings: Settings, folder: StateFolder, holder: str | None) -> Iterator[Finding]:
    """Ask the running service how it is; where none runs, see whether its addresses are free."""
    ours = Path(settings.intake.socket) if settings.intake.socket else folder.socket
    if holder is None:
        yield from _check_free(ours, settings.intake.listen)
        return
    # The one that systemd keeps open is linked to from where ours would be.
    asked = {path.resolve() for path in (ours, HANDED_OVER) if path.exists()}
    if not asked:
        yield note(
            "socket",
            f"process {holder} works, and has no door at {ours}",
            "nothing to do while it is a rubezh transcribe; otherwise restart the service",
        )
    for path in sorted(asked):
        yield from _ask(path)


def judge_readiness(path: Path, status: int, said: dict[str, Any]) -> Iterator[Finding]:
    """Say what the answer of `/readyz` means."""
    missing, closed = list(said.get("not_ready", ())), dict(said.get("closed_lanes", {}))
    if missing:
        told = f"the service at {path} is not ready ({status}): {'; '.join(missing)}"
        yield fault("service", told, "see its log: journalctl -u rubezh -p warning")
    else:
        yield ok("service", f"ready, at {path}")
    for lane, reason in closed.items():
        yield fault(
            "lanes", f"the lane {lane} is closed: {reason}", "mend what the reason names; it opens by itself"
        )


def _ask(path: Path) -> Iterator[Finding]:
    connection = _OverUnixSocket(path)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        said = json.loads(answer.read(1 << 20))
    except (OSError, http.client.HTTPException, ValueError) as error:
        yield fault(
            "socket",
            f"the service does not answer at {path} ({_told(error)})",
            "if this user may open it, see the log, and restart the service",
        )
    else:
        yield from judge_readiness(path, answer.status, said)
    finally:
        connection.close()


def _told(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _check_free(path: Path, listen: str) -> Iterator[Finding]:
    if len(os.fsencode(path)) > _LONGEST_PATH:
        yield fault(
            "socket", f"the path {path} is too long for a socket", "set intake.socket to a shorter one"
        )
    elif path.exists() and not path.is_socket():
        yield fault("socket", f"{path} is a file and no socket", "set intake.socket to another path")
    else:
        yield ok("socket", f"{path} is free for the service")
    if listen:
        host, _, port = listen.rpartition(":")
        try:
            for family, kind, _, _, address in socket.getaddrinfo(
                host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                with socket.socket(family, kind) as trial:
                    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    trial.bind(address)
        except OSError as error:
            yield fault(
                "socket",
                f"cannot listen on {listen} ({error.strerror})",
                "set intake.listen to another address",
            )
        else:
            yield ok("socket", f"{listen} is free for the service")

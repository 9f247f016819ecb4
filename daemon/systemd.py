"""What passes between us and systemd: notifications, the watchdog, inherited sockets.

Source: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3).
"""

import os
import socket
import time
from collections.abc import Callable, MutableMapping
from typing import Final

import structlog
import trio
from attrs import field, frozen

log = structlog.get_logger()

_FIRST_DESCRIPTOR: Final = 3
_SECONDS_TO_SEND: Final = 1.0
_SECONDS_OF_PATIENCE: Final = 30.0
_SECONDS_BETWEEN_LOOKS: Final = 10.0  # where systemd watches nothing


def ready(status: str) -> None:
    """Tell that the service is up; `status` is the line that `systemctl status` shows."""
    notify("READY=1", f"STATUS={status}")


def status(sentence: str) -> None:
    """Change the line that `systemctl status` shows."""
    notify(f"STATUS={sentence}")


def stopping(sentence: str) -> None:
    """Tell that the service is on its way out."""
    notify("STOPPING=1", f"STATUS={sentence}")


def reloading() -> None:
    """Tell that settings are read again; `ready` ends it."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


def extend_timeout(seconds: float) -> None:
    """Ask for `seconds` more, from now, before systemd gives up on the start or the stop under way."""
    notify(f"EXTEND_TIMEOUT_USEC={round(seconds * 1_000_000)}")


def notify(*lines: str) -> bool:
    """Send `lines` to systemd; False when nobody asked for them, or (logged) they could not be sent."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    text = "\n".join(line.replace("\n", " ") for line in lines)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.settimeout(_SECONDS_TO_SEND)
            sender.sendto(text.encode(), address)
    except OSError as error:
        log.warning("systemd.unreachable", unsent=text, reason=error)
        return False
    return True


def watchdog_seconds() -> float | None:
    """Return how often systemd wants to hear from this process, or None when it does not watch it."""
    microseconds, process = os.environ.get("WATCHDOG_USEC"), os.environ.get("WATCHDOG_PID")
    if not microseconds or (process and process != str(os.getpid())):
        return None
    return int(microseconds) / 1_000_000


@frozen
class Inherited:
    """A listening socket that systemd opened for us."""

    name: str
    socket: socket.socket


def inherited_sockets(environment: MutableMapping[str, str] = os.environ) -> tuple[Inherited, ...]:
    """Take over the sockets handed to this process, once: the environment speaks of them no more."""
    process = environment.pop("LISTEN_PID", "")
    number = environment.pop("LISTEN_FDS", "0")
    names = environment.pop("LISTEN_FDNAMES", "").split(":")
    if process != str(os.getpid()):
        return ()
    taken = []
    for index in range(int(number)):
        descriptor = _FIRST_DESCRIPTOR + index
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - it takes its second argument by place only
        name = names[index] if index < len(names) else "unknown"
        taken.append(Inherited(name, socket.socket(fileno=descriptor)))
    return tuple(taken)


@frozen
class Beats:
    """Who promised to be heard from again, and by when.

    Each part of the service promises anew before every wait, with the longest that wait may take; one that
    ends its work leaves. A promise that is broken means a part that hangs, whatever it hangs in. To each
    promise `margin_seconds` are added, for the calls that are made between two of them.
    """

    clock: Callable[[], float] = trio.current_time
    margin_seconds: float = 0.0
    _due: dict[str, float] = field(factory=dict, init=False)

    def promise(self, name: str, seconds: float) -> None:
        """Promise that `name` will promise again, or leave, within `seconds`."""
        self._due[name] = self.clock() + seconds + self.margin_seconds

    def leave(self, name: str) -> None:
        """Expect `name` no more; one who never promised may leave too."""
        self._due.pop(name, None)

    def silent(self) -> frozenset[str]:
        """Return the names whose promise is broken at this moment."""
        now = self.clock()
        return frozenset(name for name, due in self._due.items() if due < now)


async def ask_for_patience(task_status: trio.TaskStatus[trio.CancelScope] = trio.TASK_STATUS_IGNORED) -> None:
    """Ask systemd for more time as long as the start takes: a database may have to recover, or to migrate.

    The event loop lives, or it would not be asked. Ends with the scope that `started` returns.
    """
    with trio.CancelScope() as starting:
        task_status.started(starting)
        while True:
            extend_timeout(_SECONDS_OF_PATIENCE)
            await trio.sleep(_SECONDS_OF_PATIENCE / 3)


async def feed_watchdog(beats: Beats) -> None:
    """Tell systemd that all is well for as long as it is: nobody is silent, and this task gets its turn.

    Where systemd does not watch, the silent are still told to the log, once each time.
    """
    allowed = watchdog_seconds()
    interval = allowed / 3 if allowed else _SECONDS_BETWEEN_LOOKS
    told: frozenset[str] = frozenset()
    while True:
        silent = beats.silent()
        if silent - told:
            log.error("watchdog.withheld", silent=", ".join(sorted(silent)))
        if not silent and allowed:
            notify("WATCHDOG=1")
        told = silent
        try:
            await trio.sleep(interval)
        except trio.Cancelled:
            # From here on all that is left is to close, and that may take a whole interval.
            if not beats.silent() and allowed:
                notify("WATCHDOG=1")
            raise

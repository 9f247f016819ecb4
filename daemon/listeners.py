"""Where the doors are: sockets that systemd handed over, a path of our own, a host and port.

A socket that was handed over is systemd's: it stays open while we are not there, whoever connects waits in it
for our next start, and we neither make nor remove it.
"""

import errno
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import trio

from storage.errors import Refused

_BACKLOG = 4096  # as many as are served: a full one turns senders away without a word
_LONGEST_PATH = 107  # what the kernel takes as the name of a socket
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)


@contextmanager
def local_door(path: Path, inherited: Sequence[socket.socket]) -> Iterator[list[trio.SocketListener]]:
    """Have a door at `path`, whatever else there is: a link to an inherited Unix socket, else one of our own.

    Raises Refused for a path that cannot be had.
    """
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise Refused(f"the path {path} is too long for a socket; set intake.socket to a shorter one")
    behind = next((name for name in map(name_of, inherited) if name.startswith("/")), None)
    if behind is None:
        with _socket_at(path) as listening:
            yield [_listener(listening)]
    else:
        _link(path, Path(behind))
        yield []


def inherited_doors(inherited: Sequence[socket.socket]) -> list[trio.SocketListener]:
    """Listen on what was handed over; raises Refused for a socket that nobody can connect to."""
    for each in inherited:
        kind = each.family in _FAMILIES and each.type == socket.SOCK_STREAM
        if not kind or not each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise Refused(
                f"systemd handed over a socket that does not listen for streams ({name_of(each)}); "
                "have nothing but ListenStream= in rubezh.socket, and Accept=no"
            )
    return [_listener(each) for each in inherited]


async def tcp_doors(listen: str) -> list[trio.SocketListener]:
    """Listen on `host:port`, on nothing when it is empty; raises Refused for an address one cannot have."""
    if not listen:
        return []
    host, _, port = listen.rpartition(":")
    try:
        return await trio.open_tcp_listeners(int(port), host=host.strip("[]"), backlog=_BACKLOG)
    except OSError as error:
        cause, remedy = error.strerror or error, "set intake.listen to another address"
        if error.errno == errno.EAFNOSUPPORT:
            remedy = "leave intake.listen empty and have the address in rubezh.socket, as ListenStream="
        raise Refused(f"cannot listen on {listen} ({cause}); {remedy}") from error


def name_of(listening: socket.socket | trio.socket.SocketType) -> str:
    """Return the address of a socket as a person writes it."""
    name = listening.getsockname()
    if isinstance(name, bytes):  # an abstract one
        return "@" + name[1:].decode("utf-8", "replace")
    return name if isinstance(name, str) else f"{name[0]}:{name[1]}"


def _listener(listening: socket.socket) -> trio.SocketListener:
    return trio.SocketListener(trio.socket.from_stdlib_socket(listening))


@contextmanager
def _socket_at(path: Path) -> Iterator[socket.socket]:
    """Listen on a path; what a dead server left there is replaced, and nothing is left behind."""
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            _free_place(path)
            listening.bind(os.fspath(path))
            path.chmod(0o660)
            mine = path.stat().st_ino
            listening.listen(_BACKLOG)
        except OSError as error:
            raise _refused(path, error) from error
        try:
            yield listening
        finally:
            if path.exists() and path.stat().st_ino == mine:
                path.unlink()


def _link(path: Path, behind: Path) -> None:
    """Lead from `path` to an inherited socket; the link stays, as the socket does."""
    try:
        if path.exists() and path.samefile(behind):
            return
        _free_place(path)
        path.symlink_to(behind)
    except OSError as error:
        raise _refused(path, error) from error


def _free_place(path: Path) -> None:
    if path.is_symlink():  # to a socket that was handed to an earlier run
        path.unlink()
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise Refused(f"{path} is a file and no socket; set intake.socket to another path")
    with socket.socket(socket.AF_UNIX) as knocking:
        knocking.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        if knocking.connect_ex(os.fspath(path)) == errno.ECONNREFUSED:
            path.unlink()
            return
    raise Refused(f"another process listens on {path}; stop it, or set intake.socket to another path")


def _refused(path: Path, error: OSError) -> Refused:
    return Refused(f"cannot listen on {path} ({error.strerror}); set intake.socket to another")

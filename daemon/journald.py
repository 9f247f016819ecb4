"""The native journal protocol: an entry as fields, sent as one datagram that never blocks.

Source: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
"""

import array
import errno
import fcntl
import os
import re
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from daemon.outlet import Answer

JOURNAL: Final = Path("/run/systemd/journal/socket")

_FIELD_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_SEND_BUFFER: Final = 8 * 2**20
_TOO_BIG: Final = (errno.EMSGSIZE, errno.ENOBUFS)
_FULL_OR_AWAY: Final = (errno.EAGAIN, errno.ENOENT, errno.ECONNREFUSED)  # slow, or just being started again
_SEALED: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def is_stderr_the_journal(environment: Mapping[str, str], descriptor: int = 2) -> bool:
    """Tell whether `descriptor` is the very stream that systemd says it connected to the journal."""
    named = environment.get("JOURNAL_STREAM")
    if not named:
        return False
    try:
        found = os.fstat(descriptor)
    except OSError:  # closed: then it is certainly not the journal's
        return False
    return named == f"{found.st_dev}:{found.st_ino}"


def encode(fields: Mapping[str, str]) -> bytes:
    """Return an entry in the protocol's form; ValueError for a field name that journald would drop."""
    entry = bytearray()
    for name, text in fields.items():
        if not _FIELD_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no journal field")
        data = text.encode("utf-8", "backslashreplace")
        if b"\n" in data:  # only then is the length told apart
            entry += name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"
        else:
            entry += name.encode() + b"=" + data + b"\n"
    return bytes(entry)


class JournalSocket:
    """Sends entries to journald without ever waiting for it: a log must not stop the work it tells about.

    Each is addressed anew, so a restarted journald is found again.
    """

    def __init__(self, path: Path = JOURNAL) -> None:
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.settimeout(0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)

    def send(self, entry: bytes) -> Answer:
        """Send one encoded entry."""
        try:
            try:
                self._socket.sendto(entry, self._path)
            except OSError as error:
                if error.errno not in _TOO_BIG:
                    raise
                self._send_sealed(entry)
        except OSError as error:
            return Answer.LATER if error.errno in _FULL_OR_AWAY else Answer.NEVER
        return Answer.TAKEN

    def push(self) -> bool:
        """An entry is taken whole or not at all."""
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _send_sealed(self, entry: bytes) -> None:
        """Send an entry too big for a datagram as a sealed file of memory."""
        descriptor = os.memfd_create("journal-entry", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(entry)
            file.flush()
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALED)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
            self._socket.sendmsg([b""], rights, 0, self._path)

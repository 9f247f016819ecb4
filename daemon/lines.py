"""A sink of lines: a terminal, a pipe, a file; a reader who does not read is not waited for.

The way to our stderr is shared with whoever started us, so it is not made non-blocking: a pipe or a terminal
is opened once more, for us alone.
"""

import os
import select
import socket
import stat
from typing import Final, TextIO

from daemon.outlet import Answer

# Where a terminal is somebody else's it cannot be opened again: then only as much is written at once as is
# sure to fit when the kernel says that something does.
_SURE_TO_FIT: Final = 256


def lines_to(stream: TextIO) -> "Lines | Stream":
    """Return the sink that suits a stream: its descriptor where it has one, else the stream itself."""
    try:
        descriptor = stream.fileno()
        stream.flush()
    except (OSError, ValueError):  # in memory, or closed
        return Stream(stream)
    return Lines(descriptor)


class Stream:
    """A stream of ours that leads nowhere by itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def send(self, entry: bytes) -> Answer:
        """Write one entry."""
        try:
            self._stream.buffer.write(entry)
            self._stream.buffer.flush()
        except (OSError, ValueError):  # broken, closed
            return Answer.NEVER
        return Answer.TAKEN

    def push(self) -> bool:
        """There is never a part left."""
        return True


class Lines:
    """Writes to a descriptor without waiting; an entry is begun only when the one before it is out."""

    def __init__(self, descriptor: int) -> None:
        self._way = descriptor
        self._kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        self._is_ours = False
        self._rest = b""
        if self._kind in (stat.S_IFIFO, stat.S_IFCHR):
            again = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            try:
                self._way = os.open(f"/proc/self/fd/{descriptor}", again)
                self._is_ours = True
            except OSError:  # another user's, or there is no /proc: the shared way it is, with care
                self._way = descriptor

    def send(self, entry: bytes) -> Answer:
        """Write one entry, or as much of it as fits; `push` writes the rest."""
        if not self.push():
            return Answer.LATER
        try:
            written = self._write(entry)
        except BlockingIOError:
            return Answer.LATER
        except OSError:  # the other end is gone, the disk is full
            return Answer.NEVER
        self._rest = entry[written:]
        self.push()
        return Answer.TAKEN

    def push(self) -> bool:
        """Write what is left of the last entry; what nobody will ever take is let go."""
        while self._rest:
            try:
                self._rest = self._rest[self._write(self._rest) :]
            except BlockingIOError:
                return False
            except OSError:  # the same: the rest of a line has no other way
                self._rest = b""
        return True

    def close(self) -> None:
        """Close the way that was opened for us."""
        if self._is_ours:
            os.close(self._way)

    def _write(self, data: bytes) -> int:
        """Write some of it at once; raises BlockingIOError when nothing fits."""
        if self._kind == stat.S_IFREG or self._is_ours:
            return os.write(self._way, data)
        if self._kind == stat.S_IFSOCK:
            with socket.socket(fileno=os.dup(self._way)) as way:
                return way.send(data, socket.MSG_DONTWAIT)
        looking = select.poll()
        looking.register(self._way, select.POLLOUT)
        if not looking.poll(0):
            raise BlockingIOError
        return os.write(self._way, data[:_SURE_TO_FIT])

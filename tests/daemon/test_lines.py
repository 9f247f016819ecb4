"""A sink of lines never waits for its reader: whole lines, in order, and what was not taken is told so."""

import fcntl
import os
import pty
import socket
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from daemon.lines import Lines, Stream, lines_to
from daemon.outlet import Answer, Outlet

ROOT = Path(__file__).parents[2]
Way = Callable[[], AbstractContextManager[tuple[int, int]]]
LINE = b"x" * 999 + b"\n"


@contextmanager
def a_pipe() -> Iterator[tuple[int, int]]:
    """Two ends of a pipe that nobody has made non-blocking."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


@contextmanager
def a_terminal() -> Iterator[tuple[int, int]]:
    """A terminal and whoever looks at it."""
    reading, writing = pty.openpty()
    attributes = termios.tcgetattr(writing)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(writing, termios.TCSANOW, attributes)
    yield reading, writing
    os.close(reading)
    os.close(writing)


@contextmanager
def a_socket() -> Iterator[tuple[int, int]]:
    """What a service manager may connect to stderr."""
    reading, writing = socket.socketpair()
    with reading, writing:
        yield reading.fileno(), writing.fileno()


WAYS = pytest.mark.parametrize("way", [a_pipe, a_terminal, a_socket])


def drained(reading: int) -> bytes:
    """Return what has come so far."""
    os.set_blocking(reading, False)
    got = b""
    try:
        while part := os.read(reading, 65536):
            got += part
    except BlockingIOError:
        return got
    return got


@WAYS
@pytest.mark.parametrize("whose", ["ours", "somebody else's"])
def test_an_unread_way_is_not_waited_for(way: Way, whose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines arrive whole and in order, as many as were taken; nobody else's descriptor was changed."""
    if whose != "ours":
        monkeypatch.setattr(os, "open", _refused)  # as it is for a terminal of another user
    with way() as (reading, writing):
        sink = Lines(writing)
        taken = 0
        while (answer := sink.send(b"%05d " % taken + LINE)) is Answer.TAKEN:
            taken += 1
            assert taken < 100_000
        assert answer is Answer.LATER
        assert not fcntl.fcntl(writing, fcntl.F_GETFL) & os.O_NONBLOCK
        got = b""
        while sink.send(b"last\n") is not Answer.TAKEN:
            got += drained(reading)
        while not sink.push():
            got += drained(reading)
        got += drained(reading)
        sink.close()
    assert got == b"".join(b"%05d " % number + LINE for number in range(taken)) + b"last\n"


def _refused(*_: object) -> int:
    raise PermissionError


def test_a_reader_who_has_gone_is_no_error() -> None:
    """Nobody will ever take it: it is dropped, in the middle of a line too."""
    reading, writing = os.pipe()
    sink = Lines(writing)
    while sink.send(LINE) is Answer.TAKEN:
        pass
    os.close(reading)
    assert sink.push()
    assert sink.send(LINE) is Answer.NEVER
    sink.close()
    os.close(writing)


def test_a_file_goes_on_where_it_is(tmp_path: Path) -> None:
    """What is in a file is not written over."""
    file = tmp_path / "log"
    with file.open("w", encoding="utf-8") as stream:
        stream.write("before\n")
        sink = lines_to(stream)
        assert sink.send(b"after\n") is Answer.TAKEN
    assert file.read_text("utf-8") == "before\nafter\n"


def test_a_full_disk_is_no_error() -> None:
    """The log must not stop the work."""
    with Path("/dev/full").open("wb") as full:
        assert Lines(full.fileno()).send(LINE) is Answer.NEVER


def test_a_closed_stream_takes_nothing(tmp_path: Path) -> None:
    """It has no descriptor any more, and that is known beforehand."""
    stream = (tmp_path / "log").open("w", encoding="utf-8")
    stream.close()
    sink = lines_to(stream)
    assert isinstance(sink, Stream)
    assert (sink.send(b"x\n"), sink.push()) == (Answer.NEVER, True)


def test_what_the_bounds_refuse_is_counted(tmp_path: Path) -> None:
    """A reader who comes back finds what was kept, then how many are missing."""
    with a_pipe() as (reading, writing):
        outlet = Outlet(Lines(writing), b"%d missing\n".__mod__)
        said = 100 + 5000
        for number in range(said):
            outlet.info(b"%05d " % number + LINE)
        got = b""
        while not outlet.push():
            got += drained(reading)
        got += drained(reading)
    told = got.splitlines()
    assert told[-1] == b"%d missing" % (said - len(told) + 1)
    assert [line[:5] for line in told[:-1]] == [b"%05d" % number for number in range(len(told) - 1)]


def test_what_waits_for_a_reader_who_leaves_is_dropped_and_counted() -> None:
    """It is kept no longer than there is hope for it."""
    reading, writing = os.pipe()
    outlet = Outlet(Lines(writing), b"%d missing\n".__mod__)
    while outlet.push():
        outlet.info(LINE)
    for _ in range(10):
        outlet.info(LINE)
    os.close(reading)
    assert not outlet.push()
    outlet.info(LINE)
    assert outlet.dropped_in_all >= 11
    os.close(writing)


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)"])
def test_a_process_whose_log_nobody_reads_goes_on_to_its_end(end: str) -> None:
    """As a service does in a terminal that is held, or behind a pipe whose reader hangs."""
    program = f"""
import os, structlog, sys
from daemon.journal import configure
configure("console", "info")
log = structlog.get_logger()
for number in range(5000):
    log.info("record.reached", number=number, filler="x" * 100)
print("done", flush=True)
{end}
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        assert child.wait(timeout=30) == 0

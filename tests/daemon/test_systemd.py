"""What systemd hears from us, on a real socket; and when it stops hearing."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from daemon import systemd
from daemon.systemd import Beats, feed_watchdog

ROOT = Path(__file__).parents[2]


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The socket that systemd would listen on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listener


def count(listener: socket.socket) -> int:
    """Return how many messages have come, and take them."""
    listener.settimeout(0)
    number = 0
    try:
        while listener.recv(4096):
            number += 1
    except BlockingIOError:
        return number
    raise AssertionError("an empty message")


def test_what_is_told_is_what_systemd_reads(heard: socket.socket) -> None:
    """Each call is one message in sd_notify's own words."""
    systemd.ready("3 workers")
    assert heard.recv(4096) == b"READY=1\nSTATUS=3 workers"
    systemd.status("closed: whisper\nWATCHDOG=trigger")
    assert heard.recv(4096) == b"STATUS=closed: whisper WATCHDOG=trigger", "no fact can add a line of its own"
    systemd.stopping("giving back")
    assert heard.recv(4096) == b"STOPPING=1\nSTATUS=giving back"
    systemd.extend_timeout(1.5)
    assert heard.recv(4096) == b"EXTEND_TIMEOUT_USEC=1500000"
    systemd.reloading()
    assert heard.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=")


def test_an_abstract_socket_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """In containers systemd names such a socket with an at sign."""
    name = f"rubezh-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + name)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name)
        assert systemd.notify("READY=1")
        assert listener.recv(4096) == b"READY=1"


def test_without_systemd_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service in a terminal is no less a service."""
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    with capture_logs() as entries:
        assert not systemd.notify("READY=1")
    assert entries == []


def test_a_systemd_that_cannot_be_reached_is_told_to_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service goes on; its owner learns why systemd will think it never started."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    with capture_logs() as entries:
        assert not systemd.notify("READY=1")
    assert [(entry["event"], entry["log_level"]) for entry in entries] == [("systemd.unreachable", "warning")]


@pytest.mark.parametrize(
    ("microseconds", "process", "seconds"),
    [("30000000", "", 30.0), ("500000", "ours", 0.5), ("30000000", "1", None), ("", "", None)],
)
def test_the_watchdog_is_ours_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, microseconds: str, process: str, seconds: float | None
) -> None:
    """A variable inherited from a service around us is not meant for us."""
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if process == "ours" else process)
    assert systemd.watchdog_seconds() == seconds


TAKES_A_SOCKET = """
import os, socket
os.environ["LISTEN_PID"] = str(os.getpid())
from daemon.systemd import inherited_sockets
(taken,) = inherited_sockets()
assert taken.name == "poll" and not os.get_inheritable(taken.socket.fileno())
assert not [name for name in os.environ if name.startswith("LISTEN_")]
assert inherited_sockets() == ()
client, _ = taken.socket.accept()
client.sendall(b"hello")
"""


def test_an_inherited_socket_is_taken_over_once() -> None:
    """A client that came before the service was there is answered by it; children inherit nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        spare = os.dup(3)  # keeps whatever the tests hold there
        inheritable = os.get_inheritable(3)
        try:
            with socket.create_connection(listener.getsockname(), timeout=30) as client:
                os.dup2(listener.fileno(), 3, inheritable=True)
                subprocess.run(
                    [sys.executable, "-c", TAKES_A_SOCKET],
                    check=True,
                    timeout=60,
                    close_fds=False,
                    cwd=ROOT,
                    env={"LISTEN_FDS": "1", "LISTEN_FDNAMES": "poll", "PYTHONPATH": str(ROOT)},
                )
                assert client.recv(5) == b"hello"
        finally:
            os.dup2(spare, 3, inheritable=inheritable)
            os.close(spare)


def test_a_socket_for_another_process_is_left_alone() -> None:
    """Only the process that systemd named may take it."""
    environment = {"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "poll"}
    assert systemd.inherited_sockets(environment) == ()
    assert environment == {}


def test_a_broken_promise_makes_a_name_silent() -> None:
    """Whoever promises again in time, or leaves, is not silent; whoever does not is."""
    now = 100.0
    beats = Beats(clock=lambda: now)
    beats.promise("keeper", 10)
    beats.promise("worker 1", 30)
    assert beats.silent() == frozenset()
    now = 110.1
    assert beats.silent() == {"keeper"}
    beats.promise("keeper", 10)
    assert beats.silent() == frozenset()
    now = 200.0
    assert beats.silent() == {"keeper", "worker 1"}
    beats.leave("keeper")
    beats.leave("worker 1")
    beats.leave("worker 1")
    assert beats.silent() == frozenset()


def test_a_margin_is_added_to_every_promise() -> None:
    """For the calls between two promises, which have limits of their own."""
    now = 0.0
    beats = Beats(clock=lambda: now, margin_seconds=30)
    beats.promise("bell", 10)
    now = 39.0
    assert beats.silent() == frozenset()
    now = 41.0
    assert beats.silent() == {"bell"}


async def test_the_last_feeding_gives_the_closing_its_time(
    heard: socket.socket, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """When everything is being closed nobody feeds any more; all of one interval is left for it."""
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed_watchdog, Beats())
        await trio.sleep(5)
        assert count(heard) == 1
        nursery.cancel_scope.cancel()
    assert count(heard) == 1


async def test_the_watchdog_is_fed_while_nobody_is_silent(
    heard: socket.socket, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """Three times in its limit while all promises hold; not while one is broken; again when it is kept."""
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    beats = Beats()
    beats.promise("worker 1", 60)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed_watchdog, beats)
        with capture_logs() as entries:
            await trio.sleep(55)
            assert count(heard) == 6
            assert entries == []
            await trio.sleep(100)
            assert count(heard) == 1, "the one at 60 seconds, when the promise still held"
            assert [(entry["event"], entry["log_level"], entry["silent"]) for entry in entries] == [
                ("watchdog.withheld", "error", "worker 1")
            ]
            beats.promise("worker 1", 1000)
            await trio.sleep(30)
            assert count(heard) == 3
        nursery.cancel_scope.cancel()


async def test_a_silent_part_is_told_also_where_nobody_watches(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """Without systemd the log alone says that something hangs: once, and again after it went well between."""
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    beats = Beats()
    beats.promise("bell", 5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(feed_watchdog, beats)
        with capture_logs() as entries:
            await trio.sleep(100)
            assert len(entries) == 1
            beats.promise("bell", 15)
            await trio.sleep(100)
            assert len(entries) == 2
        nursery.cancel_scope.cancel()


async def test_a_long_start_asks_for_patience_until_it_is_over(
    heard: socket.socket, autojump_clock: trio.testing.MockClock
) -> None:
    """Systemd is asked for more time, again and again, by the loop that starts, until it has started."""
    del autojump_clock
    async with trio.open_nursery() as nursery:
        starting: trio.CancelScope = await nursery.start(systemd.ask_for_patience)
        await trio.sleep(25)
        assert count(heard) == 3
        starting.cancel()
    assert count(heard) == 0

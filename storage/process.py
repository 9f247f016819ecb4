"""Child processes that never outlive us, awaited without threads.

Every child is spawned from the main thread: the kernel ties "die with your parent" to the thread that
spawned the child, and a pool thread ends after some idle seconds. Each has a session of its own, so that
a Ctrl-C meant for us does not end it before its work is given back.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import trio
from attrs import frozen

from storage import lifeline

REAP_SECONDS = 10.0  # how long SIGKILL may take to be obeyed before we say that it is not


@frozen
class SystemUser:
    """Whom a child of root runs as."""

    name: str
    uid: int
    gid: int


@frozen(kw_only=True)
class ProcessSetup:
    """How a child is set up before its own first line; the file descriptors default to /dev/null."""

    environment: Mapping[str, str]
    folder: Path
    stdin: int = subprocess.DEVNULL
    stdout: int = subprocess.DEVNULL
    stderr: int = subprocess.DEVNULL
    pass_fds: Sequence[int] = ()
    user: SystemUser | None = None
    when_we_die: signal.Signals = signal.SIGKILL
    memory_bytes: int | None = None
    cpu_seconds: int | None = None
    file_bytes: int | None = None


class Process:
    """A child of ours, from its start until it is reaped."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self.pid = popen.pid
        self._popen = popen
        self._pidfd = os.pidfd_open(popen.pid)

    @property
    def returncode(self) -> int | None:
        """The exit code, minus the signal's number when one ended it; None until it has been waited for."""
        return self._popen.returncode

    async def wait(self) -> int:
        """Wait until it ends, by whichever cause, and return its code; any number of tasks may wait."""
        if self._popen.returncode is None:
            fd = os.dup(self._pidfd)  # Trio lets only one task wait on a descriptor
            try:
                await trio.lowlevel.wait_readable(fd)
            finally:
                os.close(fd)
            self._reap()
        return int(self._popen.returncode)

    def has_ended(self) -> bool:
        """Tell at once whether it is over, without waiting for it."""
        over = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return self._popen.returncode is not None or os.waitid(os.P_PIDFD, self._pidfd, over) is not None

    def send(self, sig: signal.Signals) -> None:
        """Send a signal; nobody else can be hit, and one that has ended takes no harm."""
        if self._popen.returncode is None:
            signal.pidfd_send_signal(self._pidfd, sig)

    def kill(self) -> None:
        """End it and everything it started in its session."""
        if self._popen.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)

    def _reap(self) -> None:
        if self._popen.returncode is None:
            self.kill()  # what it left behind: until it is reaped, its number is its own
            self._popen.poll()
            os.close(self._pidfd)


def _lifeline_words(setup: ProcessSetup) -> Iterable[str]:
    yield f"parent={os.getpid()}"
    yield f"signal={int(setup.when_we_die)}"
    if setup.user is not None:
        yield f"uid={setup.user.uid}"
        yield f"gid={setup.user.gid}"
    limits = {"memory": setup.memory_bytes, "cpu": setup.cpu_seconds, "file": setup.file_bytes}
    for name, most in limits.items():
        if most is not None:
            yield f"{name}={most}"


def _spawn(flags: Sequence[str], kind: str, argv: Sequence[str], setup: ProcessSetup) -> Process:
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("a child process must be spawned from the main thread: it dies with its thread")
    command = [sys.executable, *flags, lifeline.__file__, *_lifeline_words(setup), kind, *argv]
    popen = subprocess.Popen(
        command,
        env=dict(setup.environment),
        cwd=setup.folder,
        stdin=setup.stdin,
        stdout=setup.stdout,
        stderr=setup.stderr,
        pass_fds=setup.pass_fds,
        start_new_session=True,
    )
    return Process(popen)


def spawn_program(argv: Sequence[str], setup: ProcessSetup) -> Process:
    """Start a program named by its full path; raises OSError when there can be no new process."""
    return _spawn(["-I", "-S", "-B"], "exec", argv, setup)


def spawn_module(module: str, arguments: Sequence[str], setup: ProcessSetup) -> Process:
    """Start `python -m module arguments...`; raises OSError when there can be no new process."""
    return _spawn(["-I", "-B", "-X", "utf8", "-X", "faulthandler"], "module", [module, *arguments], setup)


async def end(process: Process, sig: signal.Signals, seconds: float) -> int:
    """Ask it to end by `sig`, and after `seconds` kill it with all it started; returns its code.

    Shielded, and bounded by `seconds` + `REAP_SECONDS`. Raises TimeoutError when even SIGKILL did nothing.
    """
    process.send(sig)
    with trio.move_on_after(seconds, shield=True):
        return await process.wait()
    process.kill()
    with trio.move_on_after(REAP_SECONDS, shield=True):
        return await process.wait()
    raise TimeoutError(f"process {process.pid} does not end: the machine holds it in a call it cannot leave")


async def run_program(argv: Sequence[str], setup: ProcessSetup, *, seconds: float) -> int:
    """Run a program to its end and return its code; raises trio.TooSlowError after `seconds`."""
    process = spawn_program(argv, setup)
    try:
        with trio.fail_after(seconds):
            return await process.wait()
    finally:
        await end(process, signal.SIGKILL, REAP_SECONDS)  # noqa: ASYNC102 - shields and bounds itself


def how_it_ended(returncode: int) -> str:
    """Say in words what a return code means."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"signal {signal.Signals(-returncode).name}"
    except ValueError:
        return f"signal {-returncode}"

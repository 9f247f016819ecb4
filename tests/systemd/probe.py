"""What an attacker inside the unit would try, and what comes of it: run by the daemon, in its own process."""

import ctypes
import mmap
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_PERF_EVENT_OPEN, _BPF, _KEYCTL = 298, 321, 250  # as x86-64 numbers them
_RWX = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC


def probe(folder: Path) -> dict[str, str]:
    """Try everything; return what was refused, by the error, and what was not."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments: object) -> None:
        if getattr(libc, name)(*arguments) == -1:
            raise OSError(ctypes.get_errno(), name)

    own = folder / "own"
    own.write_text("#!/bin/sh\nexit 0\n")
    own.chmod(0o700)
    tries: dict[str, Callable[[], object]] = {
        # What it must not be able to do.
        "speak IPv4": lambda: socket.socket(socket.AF_INET),
        "speak IPv6": lambda: socket.socket(socket.AF_INET6),
        "ask the kernel about networks": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "see other packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
        "write programs": lambda: Path("/usr/lib/rubezh/planted").write_text("x"),
        "write settings": lambda: Path("/etc/rubezh/planted").write_text("x"),
        "write beside its state": lambda: Path("/var/lib/planted").write_text("x"),
        "write beside its socket": lambda: Path("/run/rubezh/planted").write_text("x"),
        "read the passwords": Path("/etc/shadow").read_text,
        "read the secrets of others": Path("/etc/credstore/another").read_text,
        "see homes": lambda: [*Path("/home").iterdir(), *Path("/root").iterdir()],
        "see other processes": lambda: Path("/proc/1/cmdline").read_bytes(),
        "see disks": lambda: next(Path("/dev").glob("[svn][dv]*")),
        "run what it wrote": lambda: subprocess.run([own], check=True),
        "run what it wrote to /tmp": lambda: _run_from("/tmp"),  # noqa: S108 - its own, and that is tried
        "leave a set-user-id program": lambda: own.chmod(0o4700),
        "become root": lambda: os.setuid(0),
        "make namespaces": lambda: call("unshare", _CLONE_NEWUSER),
        "mount": lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
        "change the kernel's settings": lambda: Path("/proc/sys/kernel/panic").write_text("1"),
        "change its control group": lambda: Path("/sys/fs/cgroup/planted").mkdir(),
        "read the kernel's log": lambda: call("klogctl", 3, ctypes.create_string_buffer(64), 64),
        "set the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
        "set the host's name": lambda: socket.sethostname("planted"),
        "run before all others": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        "raise its priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
        "end systemd": lambda: os.kill(1, signal.SIGTERM),
        "watch the machine": lambda: call("syscall", _PERF_EVENT_OPEN, None, 0, -1, -1, 0),
        "load code into the kernel": lambda: call("syscall", _BPF, 0, None, 0),
        "reach the kernel's keys": lambda: call("syscall", _KEYCTL, 0, -3, 1),
        "take another personality": lambda: call("personality", 0x0400000),
        "make new code": lambda: mmap.mmap(-1, 4096, prot=_RWX),
        # What it must be able to do.
        "write its state": lambda: (folder / "written").write_text("x"),
        "write to /tmp": lambda: Path("/tmp/written").write_text("x"),  # noqa: S108 - its own, and that is tried
        "speak on Unix sockets": lambda: socket.socket(socket.AF_UNIX).close(),
        "lower a child's priority": lambda: _in_child("import os; os.nice(5)"),
        "make new code in a child": lambda: _in_child(f"import mmap; mmap.mmap(-1, 4096, prot={_RWX})"),
    }
    return {name: _came_of(attempt) for name, attempt in tries.items()}


def _came_of(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def _run_from(place: str) -> None:
    program = Path(place) / "own"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o700)
    subprocess.run([program], check=True)


def _in_child(code: str) -> None:
    subprocess.run([sys.executable, "-I", "-c", code], check=True)

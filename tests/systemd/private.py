"""A real systemd for tests, in namespaces of its own over the machine's files. Needs root and cgroup2."""

import json
import os
import select
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final, NoReturn

import pytest
from attrs import frozen

_BOOT: Final = Path(__file__).with_name("private.sh")
_BOOT_SECONDS: Final = 30.0
_RUN_SECONDS: Final = 75.0
_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"
_NEEDED: Final = ("unshare", "setpriv", "nsenter", "pivot_root", "dbus-daemon", "systemctl", "journalctl")
_NOTHING: Final[Mapping[str, Path]] = MappingProxyType({})
REQUIRED: Final = (
    "RUBEZH_TESTS_NEED_SYSTEMD"  # set where a test without its systemd must not pass for one that ran
)
_NAMESPACES: Final = ("--mount", "--uts", "--ipc", "--net", "--pid")


@frozen
class PrivateSystemd:
    """A booted systemd; `first` is its process 1, as the machine numbers it."""

    first: int

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command inside, as root, and return what it printed."""
        try:
            done = subprocess.run(
                self._inside(command), check=False, capture_output=True, text=True, timeout=_RUN_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{error}; inside are:\n{self._processes()}") from error
        if check and done.returncode:
            raise AssertionError(
                f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}"
            )
        return done.stdout

    @contextmanager
    def running(self, *command: str) -> Iterator["subprocess.Popen[str]"]:
        """Have a command run inside, with pipes to it, while the block lasts."""
        pipe = subprocess.PIPE
        with subprocess.Popen(self._inside(command), stdin=pipe, stdout=pipe, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def write(self, path: str, text: str) -> None:
        """Write a file inside."""
        self.run("sh", "-euc", f"mkdir -p {Path(path).parent}; printf %s {shlex.quote(text)} > {path}")

    def _inside(self, command: tuple[str, ...]) -> list[str]:
        enter = ["nsenter", "-t", str(self.first), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "--"]
        plain = ["env", "-i", f"PATH={_PATH}", "LANG=C.UTF-8", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0"]
        return [*enter, *plain, *command]

    def _processes(self) -> str:
        """Return every process inside with its state, and where in the kernel it waits."""
        inside = Path(f"/proc/{self.first}/ns/pid").readlink()
        return "\n".join(filter(None, (_told(process, inside) for process in Path("/proc").glob("[0-9]*"))))

    def show(self, unit: str, *properties: str) -> dict[str, str]:
        """Return properties of a unit."""
        told = self.run("systemctl", "show", unit, *(f"--property={name}" for name in properties))
        return dict(line.split("=", 1) for line in told.splitlines() if "=" in line)

    def journal(self, *matches: str) -> list[dict[str, Any]]:
        """Return the entries of the journal that match."""
        self.run("journalctl", "--sync")
        told = self.run("journalctl", "--output=json", "--all", *matches)
        return [json.loads(line) for line in told.splitlines()]


def why_not() -> str | None:
    """Return why no systemd can be booted here, or None when one can."""
    if os.geteuid() != 0:
        return "needs root"
    if missing := [name for name in _NEEDED if not shutil.which(name, path=_PATH)]:
        return f"needs {', '.join(missing)}"
    if _cgroups() is None:
        return "needs cgroup2"
    probe = ["unshare", *_NAMESPACES, "--cgroup", "--fork", "true"]
    done = subprocess.run(probe, check=False, capture_output=True, text=True)
    return f"no namespaces here: {done.stderr.strip()}" if done.returncode else None


def need_systemd() -> None:
    """Skip the test where no systemd can be booted, with the reason; fail it where one must be."""
    if (reason := why_not()) is not None:
        cannot_run(reason)


def cannot_run(reason: str) -> NoReturn:
    """Skip the test, or fail it where it must run."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, and the tests with a real systemd cannot run here: {reason}")
    pytest.skip(reason)


@contextmanager
def private_systemd(shown: Mapping[str, Path] = _NOTHING) -> Iterator[PrivateSystemd]:
    """Boot one, and leave nothing of it behind.

    It has the machine's files but for the private ones (`/home`, `/root`, `/run`, `/tmp`, `/var/tmp`);
    `shown` has the folders that are to be there all the same, to be read, by where they are to be.
    """
    cgroups = _cgroups()
    assert cgroups is not None, "ask why_not first"
    folder = Path(tempfile.mkdtemp(prefix="rubezh-systemd-"))
    group = cgroups / folder.name
    try:
        _prepare(folder, shown)
        group.mkdir()
        with (folder / "boot.log").open("wb") as said, _booted(folder, group, said) as process:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii")
            yield PrivateSystemd(int(children.split()[0]))
    finally:
        _remove(group)
        shutil.rmtree(folder)


def _told(process: Path, inside: Path) -> str | None:
    try:
        if (process / "ns/pid").readlink() != inside:
            return None
        state = (process / "stat").read_text("utf-8").rpartition(")")[2].split()[0]
        command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        return f"{process.name} {state} {(process / 'wchan').read_text('utf-8')} {command}"
    except OSError:  # it ended while we looked, or is none of ours
        return None


def _prepare(folder: Path, shown: Mapping[str, Path]) -> None:
    (folder / "shown").write_text("".join(f"{place}\n{path}\n" for place, path in shown.items()), "utf-8")
    (folder / "shared").mkdir()
    (folder / "over").mkdir()
    for path in (folder, folder / "shared"):
        path.chmod(0o755)


@contextmanager
def _booted(folder: Path, group: Path, said: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", *_NAMESPACES, "--fork", "--kill-child=KILL"]
    command += ["--propagation", "private", "/bin/sh", str(_BOOT), str(folder), str(group)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(folder / "shared" / "notify"))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/")
        with process:
            try:
                _await_boot(heard, process, folder / "boot.log")
                # It goes on telling how it is, and would wait for ever for a listener who does not listen.
                heard.close()
                yield process
            finally:
                process.kill()


def _await_boot(heard: socket.socket, process: subprocess.Popen[bytes], said: Path) -> None:
    """Wait for systemd itself to say that it is ready."""
    limit = time.monotonic() + _BOOT_SECONDS
    while time.monotonic() < limit and process.poll() is None:
        readable, _, _ = select.select([heard], [], [], 0.2)
        if readable and b"READY=1" in heard.recv(65536).split(b"\n"):
            return
    raise AssertionError(f"systemd did not boot: {said.read_text('utf-8')}")


def _remove(group: Path) -> None:
    """Kill what is left in the cgroup, and remove it with all that systemd made in it."""
    if not group.exists():
        return
    (group / "cgroup.kill").write_text("1")
    limit = time.monotonic() + 10
    while True:
        try:
            for path, _, _ in os.walk(group, topdown=False):
                Path(path).rmdir()
        except OSError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.02)
        else:
            return


def _cgroups() -> Path | None:
    for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
        place, _, kind = line.partition(" - ")
        if kind.split()[0] == "cgroup2" and place.split()[3] == "/":
            return Path(place.split()[4])
    return None

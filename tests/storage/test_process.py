"""Child processes end with us, never before us, and never outlive us."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from storage import lifeline
from storage.process import (
    Process,
    ProcessSetup,
    SystemUser,
    end,
    how_it_ended,
    run_program,
    spawn_module,
    spawn_program,
)
from tests.processes import CHECKOUT, NOBODY, eventually, is_alive

SETUP = ProcessSetup(environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, folder=Path("/"))


def shell(script: str, setup: ProcessSetup = SETUP) -> Process:
    """Start a shell script as a child."""
    return spawn_program(["/bin/sh", "-c", script], setup)


async def said(script: str, setup: ProcessSetup = SETUP) -> str:
    """Run a shell script to its end and return what it wrote."""
    with tempfile.TemporaryFile() as output:
        code = await run_program(["/bin/sh", "-c", script], evolve(setup, stdout=output.fileno()), seconds=20)
        assert code == 0
        output.seek(0)
        return output.read().decode().strip()


async def until(happened: Callable[[], bool]) -> None:
    """Wait for a condition, with a deadline."""
    with trio.fail_after(20):
        while not happened():  # noqa: ASYNC110 - it happens in another process
            await trio.sleep(0.01)


PARENT = """
import os, signal, sys
from pathlib import Path
from storage.process import ProcessSetup, spawn_program
child = spawn_program(["/bin/sleep", "600"], ProcessSetup(environment={}, folder=Path("/")))
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
while "sleep" not in os.readlink(f"/proc/{child.pid}/exe"):
    pass
print(child.pid, flush=True)
sys.stdin.read()
"""


def parent_with_child() -> tuple["subprocess.Popen[str]", int]:
    """Start a process of its own session that has spawned a child; returns it and the child's pid."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


def test_kill_of_the_parent_takes_the_child_along() -> None:
    """A child dies with its parent, even when the parent had no chance to end it."""
    parent, child = parent_with_child()
    with parent:
        assert is_alive(child)
        parent.kill()
    eventually(lambda: not is_alive(child), "the child died with its parent")


def test_ctrl_c_does_not_reach_the_child() -> None:
    """An interrupt for the parent's whole process group passes its children by."""
    parent, child = parent_with_child()
    with parent:
        assert parent.stdout is not None
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.stdout.readline() == "interrupted\n"
        assert is_alive(child)
        parent.kill()
    eventually(lambda: not is_alive(child), "the child died with its parent")


def test_a_child_whose_parent_is_gone_already_does_not_begin() -> None:
    """The moment between the fork and the kernel's promise is covered."""
    words = [
        sys.executable,
        "-I",
        lifeline.__file__,
        f"parent={os.getppid()}",
        "signal=9",
        "exec",
        "/bin/true",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is gone" in done.stderr


def test_a_child_spawned_from_a_passing_thread_dies_with_it() -> None:
    """The trap that `_spawn` keeps us out of is real: the promise is the thread's, not the process's."""
    words = [sys.executable, "-I", lifeline.__file__, f"parent={os.getpid()}", "signal=9"]
    started: list[subprocess.Popen[bytes]] = []
    may_end = threading.Event()

    def passing() -> None:
        child = subprocess.Popen(
            [*words, "exec", "/bin/sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE
        )
        started.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        may_end.wait(20)

    thread = threading.Thread(target=passing)
    thread.start()
    may_end.set()
    thread.join()
    with started[0] as child:
        assert child.wait(20) == -signal.SIGKILL


async def test_spawning_from_another_thread_is_refused() -> None:
    """A child can only be spawned from the main thread."""
    with pytest.raises(RuntimeError, match="main thread"):
        await trio.to_thread.run_sync(shell, "exit 0")


@pytest.mark.deep
@pytest.mark.timeout(90)
async def test_a_child_survives_threads_that_come_and_go() -> None:
    """Trio's worker threads end after ten idle seconds; no child of ours notices."""
    await trio.to_thread.run_sync(os.getpid)
    child = shell("exec sleep 600")
    await trio.to_thread.run_sync(os.getpid)
    with trio.move_on_after(30):
        await child.wait()
    assert threading.active_count() == 1
    assert not child.has_ended()
    await end(child, signal.SIGKILL, 1)


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [
        ("exit 0", 0, "exit code 0"),
        ("exit 7", 7, "exit code 7"),
        ("kill -SEGV $$", -signal.SIGSEGV, "signal SIGSEGV"),
    ],
)
async def test_the_return_code_tells_how_it_ended(script: str, code: int, told: str) -> None:
    """An exit code and a signal are told apart, for every task that waits."""
    child = shell(script)
    codes = []

    async def wait() -> None:
        codes.append(await child.wait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        nursery.start_soon(wait)
    assert codes == [code, code]
    assert child.returncode == code
    assert child.has_ended()
    assert how_it_ended(code) == told


async def test_a_signal_to_one_that_has_ended_hits_nobody() -> None:
    """Signals and kills after the end are no error and reach no other process."""
    child = shell("exit 0")
    await child.wait()
    child.send(signal.SIGTERM)
    child.kill()
    assert await end(child, signal.SIGTERM, 1) == 0


async def test_end_asks_first() -> None:
    """A child that obeys the signal ends in its own way."""
    child = shell("trap 'exit 3' TERM; while :; do sleep 0.01; done")
    await until(lambda: Path(f"/proc/{child.pid}/exe").resolve() == Path("/bin/sh").resolve())
    await trio.sleep(0.1)
    assert await end(child, signal.SIGTERM, 20) == 3


async def test_end_kills_what_does_not_obey_with_all_it_started(tmp_path: Path) -> None:
    """After its seconds a stubborn child is killed, and so is what it started."""
    script = "trap '' TERM; sleep 600 & echo $! > new; mv new pid; while :; do wait; done"
    child = shell(script, evolve(SETUP, folder=tmp_path))
    await until((tmp_path / "pid").exists)
    grandchild = int((tmp_path / "pid").read_text())
    assert is_alive(grandchild)
    assert await end(child, signal.SIGTERM, 0.1) == -signal.SIGKILL
    await until(lambda: not is_alive(grandchild))


async def test_end_is_done_under_a_cancel() -> None:
    """A cancelled scope does not stop a child from being ended."""
    child = shell("exec sleep 600")
    with trio.CancelScope() as scope:
        scope.cancel()
        await end(child, signal.SIGTERM, 20)
    assert not is_alive(child.pid)


async def test_a_program_past_its_time_is_ended() -> None:
    """Running a program has a deadline, and nothing of it is left after."""
    with pytest.raises(trio.TooSlowError):
        await run_program(["/bin/sleep", "600"], SETUP, seconds=0.2)


async def test_a_child_has_our_words_and_nothing_else_of_ours(tmp_path: Path) -> None:
    """Environment, folder and descriptors are the given ones."""
    script = "tr '\\0' ' ' < /proc/$$/environ; echo; pwd; for fd in /proc/$$/fd/*; do readlink $fd; done; :"
    with (tmp_path / "given").open("w") as given, (tmp_path / "kept").open("w") as kept:
        os.set_inheritable(kept.fileno(), True)  # noqa: FBT003 - no other way; a descriptor somebody forgot to close
        environment = {"LC_ALL": "C", "ONLY": "this"}
        setup = ProcessSetup(environment=environment, folder=tmp_path, pass_fds=(given.fileno(),))
        words, folder, *descriptors = (await said(script, setup)).split("\n")
    assert words.split() == ["LC_ALL=C", "ONLY=this"]
    assert folder == str(tmp_path)
    assert sorted(name for name in descriptors if "(deleted)" not in name) == [
        *("/dev/null", "/dev/null"),
        str(tmp_path / "given"),
    ]


async def test_a_child_is_kept_within_its_limits() -> None:
    """Memory, processor time, file size, core files and privileges are bounded before its first line."""
    setup = evolve(SETUP, memory_bytes=1 << 30, cpu_seconds=7, file_bytes=1 << 20)
    limits = await said("cat /proc/self/limits; grep NoNewPrivs /proc/self/status; umask", setup)
    found = {
        " ".join(words[:3]): words[-3:-1] for words in map(str.split, limits.splitlines()) if len(words) > 4
    }
    assert found["Max address space"] == [str(1 << 30), str(1 << 30)]
    assert found["Max cpu time"] == ["7", "12"]
    assert found["Max file size"] == [str(1 << 20), str(1 << 20)]
    assert found["Max core file"] == ["0", "0"]
    assert "NoNewPrivs:\t1" in limits
    assert limits.endswith("0077")


def test_a_lower_limit_that_is_there_already_stands() -> None:
    """As where an administrator set one: a child that asked for more would not even begin."""
    words = [sys.executable, "-I", lifeline.__file__, f"parent={os.getpid()}", "signal=9"]
    lower = ["prlimit", f"--as={1 << 29}", "--cpu=5", f"--fsize={1 << 19}"]
    asked = [f"memory={1 << 30}", "cpu=7", f"file={1 << 20}", "exec", "/bin/cat", "/proc/self/limits"]
    done = subprocess.run(
        [*lower, "--", "/bin/sh", "-c", 'exec "$0" "$@"', *words, *asked],
        capture_output=True,
        text=True,
        check=True,
    )
    found = {" ".join(each.split()[:3]): each.split()[-3:-1] for each in done.stdout.splitlines()}
    assert found["Max address space"] == [str(1 << 29)] * 2
    assert found["Max cpu time"] == ["5", "5"]
    assert found["Max file size"] == [str(1 << 19)] * 2


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_a_child_of_root_is_the_other_user_for_good() -> None:
    """Every id changes, no group of root's is kept, and the life-line holds across the change."""
    setup = evolve(SETUP, user=SystemUser("nobody", NOBODY, NOBODY))
    before = os.getgroups()
    os.setgroups([0, 4])
    try:
        status = await said("grep -E '^(Uid|Gid|Groups)' /proc/self/status", setup)
    finally:
        os.setgroups(before)
    assert status.split() == ["Uid:", *[str(NOBODY)] * 4, "Gid:", *[str(NOBODY)] * 4, "Groups:"]


async def test_a_module_of_ours_is_found_wherever_we_run_from(tmp_path: Path) -> None:
    """A module is run in isolated mode: never from its own folder, always from where our packages are."""
    (tmp_path / "storage").mkdir()
    (tmp_path / "storage" / "__init__.py").write_text("raise SystemExit('an impostor')")
    read, write = os.pipe()
    setup = evolve(SETUP, folder=tmp_path, stdout=write)
    child = spawn_module("tests.storage.told", ["one", "two"], setup)
    os.close(write)
    async with trio.lowlevel.FdStream(read) as stream:
        heard = b"".join([chunk async for chunk in stream])
    assert await child.wait() == 0
    told: dict[str, Any] = json.loads(heard)
    assert told["arguments"] == ["one", "two"]
    assert told["name"] == "__main__"
    assert told["isolated"] == 1
    assert told["oom_score_adj"] == 500
    assert Path(told["storage"]) == Path(lifeline.__file__).parent

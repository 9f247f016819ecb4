"""One child process of ours that speaks JSON lines: said on its stdin, heard on its stdout."""

import json
import os
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import trio

from stages.stage import ChildDied, ChildRecipe
from storage.process import REAP_SECONDS, Process, ProcessSetup, end, how_it_ended, spawn_module

LONGEST_LINE = 1 << 20  # bytes, either way
LAST_WORDS_BYTES = 4096
LAST_WORDS_SECONDS = 1.0
CHUNK = 64 * 1024
_OUT_OF_MEMORY = (
    "MemoryError",
    "bad_alloc",
    "Cannot allocate memory",
    "out of memory",
    "Memory allocation still failed",  # OpenBLAS
)


def child_environment(recipe: ChildRecipe, cpu_threads: int) -> dict[str, str]:
    """Return all a child gets to know of the world: no secret of ours, no way to ask anybody's server."""
    return {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(recipe.folder),
        "TMPDIR": str(recipe.folder),
        "OMP_NUM_THREADS": str(cpu_threads),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        **recipe.environment,
    }


def told_death(module: str, returncode: int, words: str) -> str:
    """Say how a child ended, as far as its code and its last words tell."""
    how = f"ended with {how_it_ended(returncode)}"
    if returncode != 0 and any(sign in words for sign in _OUT_OF_MEMORY):
        how = f"ran out of the memory it may use ({how_it_ended(returncode)})"
    elif returncode == -signal.SIGKILL:
        how = "was killed from outside (SIGKILL), most likely because the machine ran out of memory"
    elif returncode == -signal.SIGXCPU:
        how = "used up the processor time it may use (SIGXCPU)"
    elif returncode == -signal.SIGXFSZ:
        how = "wrote a file larger than it may (SIGXFSZ)"
    elif returncode < 0:
        how = f"crashed by {how_it_ended(returncode)}"
    return _told(f"{module} {how}", words)


def _told(what: str, words: str) -> str:
    return f"{what}; its last words: {words}" if words else what


class JsonLinesChild:
    """A running child; see `stages.stage.Child`. Whoever makes it must `close` it.

    Its stderr is drained by a task of its own (`listen`), for a pipe nobody reads blocks its writer, and a
    file would have no bound. One task at a time may speak to it.
    """

    def __init__(self, recipe: ChildRecipe, cpu_threads: int) -> None:
        self.recipe = recipe
        self._process, stdin, stdout, stderr = _spawned(recipe, cpu_threads)
        self._stdin, self._stdout, self._stderr = map(trio.lowlevel.FdStream, (stdin, stdout, stderr))
        self._heard = bytearray()
        self._words = bytearray()
        self._words_ended = trio.Event()
        self._settled = True

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def listen(self) -> None:
        """Take what it says on stderr, keeping the last of it, until it ends or is closed."""
        try:
            while words := await self._stderr.receive_some(CHUNK):
                self._words += words
                del self._words[:-LAST_WORDS_BYTES]
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            return  # closed by us: whoever did it has what it wanted
        finally:
            self._words_ended.set()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; raises `ChildDied` when nobody is there, ValueError when it is over 1 MiB."""
        line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        if len(line) > LONGEST_LINE:
            raise ValueError(
                f"a message to {self.recipe.module} is over {LONGEST_LINE} bytes long: {len(line)}"
            )
        self._settled = False
        try:
            await self._stdin.send_all(line)
        except trio.BrokenResourceError:
            raise await self._died() from None

    async def receive(self) -> dict[str, Any]:
        """Wait for the next message; raises `ChildDied` when it ended, or broke off and was ended for it."""
        self._settled = False
        while (line_end := self._heard.find(b"\n")) < 0:
            if len(self._heard) > LONGEST_LINE:
                raise await self._broke_off(f"spoke a line of over {LONGEST_LINE} bytes")
            heard = await self._stdout.receive_some(CHUNK)
            if not heard:
                raise await self._died()
            self._heard += heard
        line = bytes(self._heard[:line_end])
        del self._heard[: line_end + 1]
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise await self._broke_off(f"spoke a line that is no message: {line[:200]!r}")
        self._settled = True
        return message

    def is_idle(self) -> bool:
        """Tell whether it lives and owes nothing: its last word was heard, and nothing asked since."""
        return self._settled and not self._heard and not self._process.has_ended() and not self._has_more()

    def _has_more(self) -> bool:
        try:
            self._heard += os.read(self._stdout.fileno(), CHUNK)
        except BlockingIOError:
            return False
        return True

    async def close(self) -> None:
        """Kill it with all it started and wait until it is gone. Shielded, and bounded by seconds."""
        with trio.CancelScope(shield=True):  # its waits have their own bounds
            try:
                await end(self._process, signal.SIGKILL, REAP_SECONDS)
            finally:
                for stream in (self._stdin, self._stdout, self._stderr):
                    await stream.aclose()

    async def _died(self) -> ChildDied:
        """Describe the end of a child that has closed its side; one that lingers is ended."""
        with trio.move_on_after(LAST_WORDS_SECONDS):
            returncode = await self._process.wait()
            await self._words_ended.wait()
            return ChildDied(told_death(self.recipe.module, returncode, self._last_words()))
        return await self._broke_off("closed its output and lived on")

    async def _broke_off(self, what: str) -> ChildDied:
        await end(self._process, signal.SIGKILL, REAP_SECONDS)
        return ChildDied(_told(f"{self.recipe.module} {what} and was ended", self._last_words()))

    def _last_words(self) -> str:
        return " | ".join(filter(None, map(str.strip, self._words.decode("utf-8", "replace").splitlines())))


def _spawned(recipe: ChildRecipe, cpu_threads: int) -> tuple[Process, int, int, int]:
    """Start the process; returns it with our ends of its stdin, stdout and stderr."""
    with ExitStack() as opened:

        def pipe() -> tuple[int, int]:
            ends = os.pipe()
            for fd in ends:
                opened.callback(os.close, fd)
            return ends

        (its_stdin, stdin), (stdout, its_stdout), (stderr, its_stderr) = pipe(), pipe(), pipe()
        setup = ProcessSetup(
            environment=child_environment(recipe, cpu_threads),
            folder=recipe.folder,
            stdin=its_stdin,
            stdout=its_stdout,
            stderr=its_stderr,
            memory_bytes=recipe.limits.memory_bytes,
            cpu_seconds=recipe.limits.cpu_seconds,
            file_bytes=recipe.limits.file_bytes,
        )
        process = spawn_module(recipe.module, recipe.arguments, setup)
        opened.pop_all()
    for fd in (its_stdin, its_stdout, its_stderr):
        os.close(fd)
    return process, stdin, stdout, stderr

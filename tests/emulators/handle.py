"""An emulator under a test's hands: started, told how to behave, and asked what it was asked."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from attrs import evolve, frozen

from tests.emulators.faults import Fault, fault_to_json
from tests.emulators.serving import PLAIN, Manner
from tests.processes import CHECKOUT

_DEADLINE_SECONDS = 60.0


@frozen
class Handle:
    """One running emulator; `url` is where its service is."""

    url: str
    _control: str

    def fault(self, at: str, *, manner: Manner = PLAIN, **more: Any) -> None:
        """Have something go wrong with calls of the operation `at`; see `Fault`."""
        self._do("fault", **fault_to_json(Fault(at=at, manner=manner, **more)))

    def lose(self, at: str, *, passing: int = 0, times: int = 1) -> None:
        """Have calls done and their answers lost."""
        self.fault(at, passing=passing, times=times, manner=evolve(PLAIN, silent=True))

    def heal(self) -> None:
        """Have nothing more go wrong."""
        self._do("heal")

    def change(self, **wishes: Any) -> None:
        """Have the service take on another manner."""
        self._do("change", **wishes)

    def quota(self, operation: str, *, most: int, seconds: float, retry_after: str | None = None) -> None:
        """Allow so many calls of an operation within so many seconds."""
        self._do("quota", operation=operation, most=most, seconds=seconds, retry_after=retry_after)

    def hold(self, operation: str, *, before: bool, passing: int = 0) -> None:
        """Hold the next call of an operation up, `before` it is done or before it is answered."""
        self._do("hold", operation=operation, before=before, passing=passing)

    def wait_until_held(self) -> None:
        """Wait until a call is held up."""
        until = time.monotonic() + _DEADLINE_SECONDS
        while not any(self._do("held")):
            assert time.monotonic() < until, "nobody makes the call that is to be held up"
            time.sleep(0.01)

    def release(self, *, lost: bool) -> None:
        """Let go of what is held up, either `lost` or as if nothing had been."""
        self._do("release", lost=lost)

    def down(self) -> None:
        """Take the service away."""
        self._do("down")

    def up(self) -> None:
        """Have it there again, at the same place."""
        self._do("up")

    def calls(self, operation: str = "") -> list[dict[str, Any]]:
        """Return all calls, or those of one operation."""
        return [call for call in self._do("calls") if operation in ("", call["operation"])]

    def acted(self, operation: str) -> list[dict[str, Any]]:
        """Return the calls of an operation that were done."""
        return [call for call in self.calls(operation) if call["acted"]]

    def _do(self, deed: str, **body: Any) -> Any:
        asked = Request(f"{self._control}/{deed}", json.dumps(body).encode())  # noqa: S310 - our own address
        with urlopen(asked, timeout=_DEADLINE_SECONDS) as answer:  # noqa: S310 - the same
            return json.load(answer)


@contextmanager
def emulator(name: str, certificate: Path | None = None) -> Iterator[Handle]:
    """Run an emulator for the length of the block."""
    words = [] if certificate is None else [str(certificate)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.emulators", name, *words],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, "the emulator did not start; its own words are above"
        ports = json.loads(line)
        scheme = "http" if certificate is None else "https"
        yield Handle(f"{scheme}://127.0.0.1:{ports['port']}", f"http://127.0.0.1:{ports['control']}")
    finally:
        process.communicate(timeout=20)


def until(happened: Callable[[], Any], what: str, seconds: float = _DEADLINE_SECONDS) -> Any:
    """Wait until it has happened, and return what it answered."""
    limit = time.monotonic() + seconds
    while not (answer := happened()):
        assert time.monotonic() < limit, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)
    return answer

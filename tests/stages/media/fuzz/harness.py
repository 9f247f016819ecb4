"""Has files decoded in a process under the decoding child's own limits, and judges each answer."""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import frozen

from stages.media.messages import Failed, Finished, Progressed, Refused, answer_from_json
from stages.media.wave64 import read_header
from storage import lifeline
from storage.record import StopCode
from tests.stages.media.fuzz.worker import LONGEST_SECONDS

SECONDS = 60.0  # for one file: none of them holds much, and the machine may be busy
MEMORY = 2**30
VERDICTS = {StopCode.NOT_MEDIA, StopCode.NO_AUDIO, StopCode.TOO_LONG}


@frozen
class Judged:
    """What was said of a file; `lines` of ours were executed for it, so many megabytes are held after it."""

    answer: Finished | Refused | Failed
    lines: int
    memory: int

    @property
    def kind(self) -> str:
        """The outcome in a word."""
        return (
            str(self.answer.code) if isinstance(self.answer, Refused) else type(self.answer).__name__.lower()
        )


class Harness:
    """One worker in a folder of its own; whatever it leaves there but a copy is a fault."""

    def __init__(self, folder: Path) -> None:
        """Start it, as the daemon starts the child."""
        self._inside = folder / "attempt"
        self._inside.mkdir()
        self.source = folder / "source"
        words = [
            f"parent={os.getpid()}",
            f"signal={int(signal.SIGKILL)}",
            f"memory={MEMORY}",
            f"file={MEMORY}",
        ]
        root = str(Path(__file__).parents[4])
        code = (
            f"import sys; sys.path.insert(0, {root!r}); import tests.stages.media.fuzz.worker as w; w.main()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", lifeline.__file__, *words, "exec", sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._inside,
            env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def judge(self, data: bytes, channels: str = "auto", *, counted: bool = False) -> Judged:
        """Have the bytes decoded; raises AssertionError for whatever must not be."""
        self.source.write_bytes(data)
        target = self._inside / "audio.w64"
        assert self._process.stdin is not None
        line = json.dumps([str(self.source), str(target), channels, counted]) + "\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        said = json.loads(self._said())
        answer = answer_from_json(said["answer"])
        assert not isinstance(answer, Progressed)
        judged = Judged(answer, said["lines"], said["memory"])
        left = [entry.name for entry in self._inside.iterdir()]
        match judged.answer:
            case Finished():
                assert left == [target.name]
                assert read_header(target).seconds == judged.answer.decoded_seconds
                assert 0 < judged.answer.decoded_seconds <= 2 * LONGEST_SECONDS
                target.unlink()
            case Refused():
                assert judged.answer.code in VERDICTS
                assert judged.answer.reason
                assert left == []
            case Failed():
                assert "memory" in judged.answer.reason, judged.answer.reason
                assert left == []
        return judged

    def _said(self) -> bytes:
        assert self._process.stdout is not None
        said, until = b"", time.monotonic() + SECONDS
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while not said.endswith(b"\n"):
                assert ready.select(until - time.monotonic()), f"no answer within {SECONDS:g} s"
                chunk = os.read(self._process.stdout.fileno(), 65_536)
                assert chunk, f"the worker died: {self._process.wait()}"
                said += chunk
        return said

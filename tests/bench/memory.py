"""Memory of every process of `rubezh transcribe` over a long recording: its peak, and whether it grows.

The figure is the proportional set size: pages shared by several processes are counted once among them.
"""

import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from attrs import frozen

from tests.bench.audio import write_joined
from tests.bench.program import environment, prepared_state, transcription
from tests.bench.table import load, say, show

SAMPLE_SECONDS = 1.0
EIGHTHS = 8


@frozen
class Sample:
    """Megabytes by kind of process at one moment."""

    at: float
    megabytes: dict[str, float]

    @property
    def whole(self) -> float:
        """All of them together."""
        return sum(self.megabytes.values())


def run(seconds: float) -> None:
    """Measure and print."""
    before = load()
    with prepared_state() as folder:
        recording = folder / "long.wav"
        write_joined(recording, seconds, 1)
        command = transcription(folder / "state", recording)
        began = time.monotonic()
        text = folder / "text"
        with (
            text.open("wb") as printed,
            subprocess.Popen(command, stdout=printed, env=environment()) as process,
        ):
            samples = list(_samples(process, began))
        words = len(text.read_text("utf-8").split())
        wall = time.monotonic() - began
        if process.returncode:
            raise RuntimeError(f"the transcription ended with {process.returncode}")
    say(f"  {words} words, {wall:.0f} s")
    _tell(samples, seconds, f"load before {before}, after {load()}")


def _tell(samples: list[Sample], seconds: float, loads: str) -> None:
    kinds = sorted({kind for sample in samples for kind in sample.megabytes})
    peak = max(samples, key=lambda sample: sample.whole)
    rows: list[tuple[object, ...]] = []
    for number in range(EIGHTHS):
        part = samples[len(samples) * number // EIGHTHS : len(samples) * (number + 1) // EIGHTHS]
        rows.append(
            (
                f"eighth {number + 1}",
                *(median(sample.megabytes.get(kind, 0.0) for sample in part) for kind in kinds),
                median(sample.whole for sample in part),
                max(sample.whole for sample in part),
            )
        )
    rows.append(
        (f"peak, at {peak.at:.0f} s", *(peak.megabytes.get(kind, 0.0) for kind in kinds), "", peak.whole)
    )
    show(
        f"Memory of all processes in MB (PSS), {seconds / 3600:g} hours of speech, medians by eighths",
        ("", *kinds, "together", "highest"),
        rows,
        (f"{len(samples)} samples; {loads}",),
    )


def _samples(process: subprocess.Popen[bytes], began: float) -> Iterator[Sample]:
    while process.poll() is None:
        megabytes: dict[str, float] = defaultdict(float)
        for number in _tree(process.pid):
            if (found := _measured(number)) is not None:
                kind, size = found
                megabytes[kind] += size
        if megabytes:
            yield Sample(time.monotonic() - began, dict(megabytes))
        time.sleep(SAMPLE_SECONDS)


def _tree(number: int) -> Iterator[int]:
    yield number
    try:
        tasks = list(Path(f"/proc/{number}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text("ascii").split()]
    except (FileNotFoundError, ProcessLookupError):  # it ended while we looked
        return
    for child in children:
        yield from _tree(int(child))


def _measured(number: int) -> tuple[str, float] | None:
    try:
        command = Path(f"/proc/{number}/cmdline").read_bytes().decode("utf-8", "replace")
        rollup = Path(f"/proc/{number}/smaps_rollup").read_text("ascii")
    except (FileNotFoundError, ProcessLookupError):
        return None
    kilobytes = next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0)
    return _kind(command), kilobytes / 1000 * 1.024


def _kind(command: str) -> str:
    for kind, sign in (
        ("recogniser", "whisper_child"),
        ("decoder", "stages.media"),
        ("postgres", "postgres"),
    ):
        if sign in command:
            return kind
    return "daemon"

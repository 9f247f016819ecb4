"""CPU seconds of a conversion to the recognition copy, beside FFmpeg's own command line doing the same.

Both are processes that begin with nothing and end with the file on disk, turn by turn. Ours is the decoding
child as the daemon starts it; it weighs a recording's sides, counts what is damaged and flushes the file.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from attrs import frozen

from stages.media.messages import Channels, Finished, Request, answer_from_json, request_to_json
from storage import lifeline
from tests.bench.audio import write_joined
from tests.bench.table import load, say, show

SECONDS = 3600.0
_LOOK_SECONDS = 0.02
MEMORY = 2**30  # bytes: the usual setting
_KINDS = {
    "mp3": ("-ar", "44100", "-ac", "2", "-c:a", "libmp3lame", "-b:a", "128k"),
    "m4a": ("-ar", "44100", "-ac", "2", "-c:a", "aac", "-b:a", "128k"),
    "opus": ("-ar", "48000", "-ac", "1", "-c:a", "libopus", "-b:a", "32k"),
    "wav": ("-ar", "44100", "-ac", "2", "-c:a", "pcm_s16le"),
}
_SAME = ("-vn", "-ac", "1", "-ar", "16000", "-c:a", "pcm_s16le", "-f", "w64")


@frozen
class Conversion:
    """What one took: CPU seconds, and megabytes at the peak."""

    cpu: float
    peak: float


def run(rounds: int, seconds: float = SECONDS) -> None:
    """Measure and print."""
    ffmpeg = shutil.which("ffmpeg")
    if ffmpeg is None:
        say(
            "\nconvert: left out, for FFmpeg's command line is not installed (Debian: apt-get install ffmpeg)"
        )
        return
    before = load()
    with tempfile.TemporaryDirectory(prefix="rubezh-bench-") as name:
        folder = Path(name)
        write_joined(folder / "speech.wav", seconds, 1)
        rows = []
        for kind, options in _KINDS.items():
            recording = folder / f"hour.{kind}"
            subprocess.run(
                [ffmpeg, "-v", "error", "-i", folder / "speech.wav", *options, recording], check=True
            )
            rows.append(_row(kind, recording, seconds, rounds, ffmpeg))
            recording.unlink()
    show(
        f"Conversion of {seconds / 60:g} minutes of speech to the recognition copy, medians",
        ("", "s of audio a CPU s", "FFmpeg's", "ours / FFmpeg's", "MB at the peak", "FFmpeg's"),
        rows,
        (f"{rounds} rounds; load before {before}, after {load()}",),
    )


def _row(kind: str, recording: Path, seconds: float, rounds: int, ffmpeg: str) -> tuple[object, ...]:
    ways: dict[str, Callable[[], Conversion]] = {
        "ours": lambda: _ours(recording, seconds),
        "theirs": lambda: _theirs(recording, ffmpeg),
    }
    taken: dict[str, list[Conversion]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in sorted(ways, reverse=bool(number % 2)):
            taken[way].append(ways[way]())
    ours, theirs = (seconds / median(one.cpu for one in taken[way]) for way in ("ours", "theirs"))
    peaks = [median(one.peak for one in taken[way]) for way in ("ours", "theirs")]
    ratio = median(b.cpu / a.cpu for a, b in zip(taken["ours"], taken["theirs"], strict=True))
    return kind, ours, theirs, ratio, *peaks


def _ours(recording: Path, seconds: float) -> Conversion:
    request = Request(
        source=str(recording),
        target=str(recording.with_name("audio.w64")),
        track=None,
        channels=Channels.AUTO,
        longest_seconds=2 * seconds,
    )
    words = [f"parent={os.getpid()}", "signal=9", f"memory={MEMORY}"]
    command = [sys.executable, "-I", "-B", lifeline.__file__, *words, "module", "stages.media.child"]
    said, taken = _accounted(command, json.dumps(request_to_json(request)) + "\n", {"OMP_NUM_THREADS": "1"})
    answer = answer_from_json(json.loads(said.splitlines()[-1]))
    if not isinstance(answer, Finished) or abs(answer.decoded_seconds - seconds) > 1:
        raise RuntimeError(f"{recording.name} was not converted: {answer}")
    return taken


def _theirs(recording: Path, ffmpeg: str) -> Conversion:
    command = [ffmpeg, "-v", "error", "-nostdin", "-y", "-i", str(recording)]
    _, taken = _accounted([*command, *_SAME, str(recording.with_name("theirs.w64"))], "", dict(os.environ))
    return taken


def _accounted(command: Sequence[str], said: str, environment: dict[str, str]) -> tuple[str, Conversion]:
    """Run a command; return what it said and what it took."""
    with tempfile.TemporaryFile("w+") as heard:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=heard, text=True, env=environment)
        assert process.stdin is not None
        process.stdin.write(said)
        process.stdin.close()
        peak = 0.0
        while True:
            peak = max(peak, _peak(process.pid))
            time.sleep(_LOOK_SECONDS)
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
        heard.seek(0)
        return heard.read(), Conversion(cpu=used.ru_utime + used.ru_stime, peak=peak)


def _peak(pid: int) -> float:
    """Return the most megabytes that a process has held since its program began; 0 once it is over."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines())
    return int(fields.get("VmHWM", "0 kB").split()[0]) / 1024

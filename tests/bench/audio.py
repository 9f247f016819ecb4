"""Long recordings made of short ones: real speech in English, one after another with pauses between.

Only clips whose words are known are taken: over noise Whisper leaves out passages at random, and whoever
leaves out the more has the less to do.
"""

import csv
import itertools
import os
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from faster_whisper.audio import decode_audio
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
RATE = 16_000
PAUSE_SECONDS = 0.8
LANGUAGE = "en"


def speech_files() -> list[Path]:
    """Return clips of speech: from the folder RUBEZH_AUDIO, the one beside the project, or the sample."""
    samples = (path for path in (ROOT / "tests" / "samples").iterdir() if path.suffix in {".opus", ".flac"})
    return [path for path, _ in known_speech()] or sorted(samples)


def known_speech() -> list[tuple[Path, str]]:
    """Return clips with what is said in them, from the folder RUBEZH_AUDIO or the one beside the project."""
    folder = Path(os.environ.get("RUBEZH_AUDIO") or ROOT.parent / "shared" / "audio")
    manifest = folder / "manifest.tsv"
    if not manifest.is_file():
        return []
    with manifest.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        named = [(folder / row["file"], row["reference"]) for row in rows if row["language"] == LANGUAGE]
    return [(path, said) for path, said in named if said and path.is_file()]


def write_joined(target: Path, seconds: float, mark: int) -> None:
    """Write `seconds` of speech, 16 kHz mono; another `mark` makes other bytes of the same speech."""
    left = round(seconds * RATE)
    with wave.open(str(target), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        for clip in _clips():
            file.writeframes(clip[:left].tobytes())
            left -= len(clip[:left])
            if not left:
                break
        file.writeframes(np.array([mark], dtype=np.int16).tobytes())


def _clips() -> Iterator[NDArray[np.int16]]:
    pause = np.zeros(round(PAUSE_SECONDS * RATE), dtype=np.int16)
    decoded = [(decode_audio(str(path)) * 32767).astype(np.int16) for path in speech_files()]
    for clip in itertools.cycle(decoded):
        yield clip
        yield pause

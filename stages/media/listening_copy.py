"""The listening copy: an MP3 of one rate, made of the recognition copy, so its seconds are those of the text.

An MP3 needs no index, neither in memory while it is written nor before it can be played, and a browser finds
each second of it by arithmetic.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import numpy as np
from av.audio.frame import AudioFrame
from numpy.typing import NDArray

from stages.media.everywhere import plays_everywhere
from stages.media.listening_messages import ListeningRequest, Made
from stages.media.peaks import Peaks
from stages.media.source import SourceFile
from stages.media.wave64 import RATE, read_header, read_sides

MEDIA = "audio/mpeg"
SIDE_BITS = 48_000  # a second
_BLOCK_SECONDS = 20
_TELL_EVERY = 0.5  # seconds between two signs of life
_LAYOUTS = {1: "mono", 2: "stereo"}

Told = Callable[[float], None]


def make(request: ListeningRequest, told: Told) -> Made:
    """Do as asked, calling `told` with the seconds that are done at most twice a second.

    Raises OSError when reading or writing fails, DamagedCopy for a recognition copy that is none.
    """
    told = _seldom(told)
    audio = Path(request.audio)
    header = read_header(audio)
    media = None
    if request.source is not None:
        with SourceFile(Path(request.source), lambda: told(0.0)) as source:
            media = plays_everywhere(source, header.seconds)
    peaks = Peaks(header.samples)
    blocks = _blocks(audio, header.samples, peaks, told)
    if media is None:
        _write(blocks, header.sides, Path(request.target))
    else:
        for _ in blocks:
            pass
    return Made(media=media or MEDIA, is_source=media is not None, peaks=peaks.as_bytes())


def _blocks(audio: Path, samples: int, peaks: Peaks, told: Told) -> Iterator[NDArray[np.int16]]:
    """Yield the samples, shape (sides, n), noting their peaks."""
    step = _BLOCK_SECONDS * RATE
    for start in range(0, samples, step):
        block, _ = read_sides(audio, start, step)
        peaks.add(block)
        yield block
        told((start + block.shape[1]) / RATE)


def _write(blocks: Iterator[NDArray[np.int16]], sides: int, target: Path) -> None:
    """Write an MP3 under its name only when it is whole and durable."""
    part = target.with_name(f"{target.name}.part")
    try:
        # The file is ours and not FFmpeg's: a write that fails is a plain OSError of that write.
        with part.open("w+b", buffering=0) as file:
            _encode(blocks, sides, file)
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _encode(blocks: Iterator[NDArray[np.int16]], sides: int, file: object) -> None:
    with av.open(file, "w", format="mp3", options={"id3v2_version": "0"}) as container:
        stream = container.add_stream("libmp3lame", rate=RATE, layout=_LAYOUTS[sides])
        stream.bit_rate = sides * SIDE_BITS
        at = 0
        for block in blocks:
            frame = AudioFrame.from_ndarray(np.ascontiguousarray(block), "s16p", _LAYOUTS[sides])
            frame.sample_rate, frame.pts = RATE, at
            at += block.shape[1]
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def _seldom(told: Told) -> Told:
    next_word = 0.0

    def tell(seconds: float) -> None:
        nonlocal next_word
        if (now := time.monotonic()) >= next_word:
            next_word = now + _TELL_EVERY
            told(seconds)

    return tell

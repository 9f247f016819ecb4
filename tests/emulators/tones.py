"""A language that a machine can hear without a model: a tone for each word, so that text depends on sound.

What was encoded, cut in parts, put out of order or sent twice is heard just so. A word that was cut in two is
heard as two pieces of one.
"""

import io
import random
from collections.abc import Sequence
from typing import Final

import av
import numpy as np
from attrs import frozen
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray

RATE: Final = 16_000
WORDS: Final = (
    *("аист", "берег", "ветер", "город", "дорога", "ель", "жук", "зима", "игла", "камень"),
    *("лес", "море", "небо", "остров", "поле", "река", "сад", "тропа", "утро", "хлеб"),
)
TONE_SECONDS: Final = 0.4
PAUSE_SECONDS: Final = 0.3

_LOWEST, _STEP = 500.0, 140.0  # Hz
_FRAME = RATE // 100
_LOUD = 0.02  # of full scale, as the mean of a frame
_GAP_FRAMES = 6
_WHOLE = 0.8  # a shorter tone is a piece of a word

Samples = NDArray[np.int16]


@frozen
class Heard:
    """One word with its times in seconds."""

    text: str
    start: float
    end: float


def spoken(words: Sequence[str], *, pause: float = PAUSE_SECONDS, tone: float = TONE_SECONDS) -> Samples:
    """Say words: each a tone, and after it a pause; in the middle of its own first pause it begins."""
    silence = np.zeros(round(pause / 2 * RATE), np.int16)
    said = [np.concatenate([silence, _tone(WORDS.index(word), tone), silence]) for word in words]
    return np.concatenate(said) if said else np.zeros(0, np.int16)


def text_of(number: int, length: int) -> list[str]:
    """Return words that are not to be mistaken for those of another number."""
    return random.Random(number).choices(WORDS, k=length)  # noqa: S311 - a text is no secret


def heard(samples: Samples) -> list[Heard]:
    """Return the words of one channel."""
    found = []
    for first, last in _runs(samples):
        start, end = first * _FRAME, last * _FRAME
        word = _word(samples[start:end])
        if end - start < _WHOLE * TONE_SECONDS * RATE:
            word = f"{word}~"
        found.append(Heard(text=word, start=start / RATE, end=end / RATE))
    return found


def decoded(data: bytes, *, raw_channels: int = 0, mixed: bool = False) -> list[Samples]:
    """Return the channels of a file at 16 kHz, or their mix; `raw_channels` of plain samples where it is none.

    Raises ValueError where it is nothing that can be heard.
    """
    if raw_channels:
        whole = np.frombuffer(data[: len(data) // (2 * raw_channels) * 2 * raw_channels], "<i2")
        return list(whole.reshape(-1, raw_channels).T)
    try:
        with av.open(io.BytesIO(data), "r") as container:
            (stream,) = container.streams.audio
            sides = stream.channels
            resampler = AudioResampler("s16p", "stereo" if sides > 1 and not mixed else "mono", RATE)
            frames = [each for frame in container.decode(stream) for each in resampler.resample(frame)]
            frames += resampler.resample(None)
    except (av.FFmpegError, ValueError) as error:
        raise ValueError(f"the audio cannot be decoded: {error}") from error
    if not frames:
        raise ValueError("the audio is empty")
    return list(np.concatenate([frame.to_ndarray() for frame in frames], axis=1))


def container_of(data: bytes) -> tuple[str, str]:
    """Return a file's container and codec as FFmpeg names them; empty where it is none."""
    try:
        with av.open(io.BytesIO(data)) as container:
            return container.format.name, container.streams.audio[0].codec_context.name
    except (av.FFmpegError, IndexError):
        return "", ""


def _tone(index: int, seconds: float) -> Samples:
    at = np.arange(round(seconds * RATE)) / RATE
    wave = 0.3 * np.sin(2 * np.pi * (_LOWEST + _STEP * index) * at)
    edge = RATE // 100
    wave[:edge] *= np.linspace(0, 1, edge)
    wave[-edge:] *= np.linspace(1, 0, edge)
    return np.asarray(wave * 32767, np.int16)


def _runs(samples: Samples) -> list[tuple[int, int]]:
    """Return where it is loud, in frames."""
    frames = len(samples) // _FRAME
    level = np.abs(samples[: frames * _FRAME].reshape(frames, _FRAME).astype(np.float32) / 32768).mean(axis=1)
    loud = np.flatnonzero(level > _LOUD)
    if not len(loud):
        return []
    borders = np.flatnonzero(np.diff(loud) > _GAP_FRAMES)
    firsts = loud[np.concatenate([[0], borders + 1])]
    lasts = loud[np.concatenate([borders, [len(loud) - 1]])] + 1
    return [(int(a), int(b)) for a, b in zip(firsts, lasts, strict=True)]


def _word(samples: Samples) -> str:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), RATE))
    index = round((float(np.argmax(spectrum)) - _LOWEST) / _STEP)
    return WORDS[index] if 0 <= index < len(WORDS) else "шум"

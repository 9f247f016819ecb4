"""Long recordings whose words are known: clips of people, shuffled and joined, and the list of them."""

import random
import re

import numpy as np
from attrs import frozen
from faster_whisper.audio import decode_audio
from numpy.typing import NDArray

from tests.bench.audio import RATE, known_speech

_PAUSES = (0.3, 2.5)
_LONG_PAUSES = (3.5, 6.0)
_LONG_SHARE = 0.15
_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGITS = {str(digit): name for digit, name in enumerate(_NAMES)}
_SPOKEN = {"mr": "mister", "mrs": "missus", "i'm": "i am", "it's": "it is"}


@frozen(kw_only=True)
class Said:
    """One clip in its place: what is said between two moments, in seconds."""

    start: float
    end: float
    words: tuple[str, ...]


@frozen(kw_only=True)
class Joined:
    """A recording, 16 kHz mono, and what is said in it, in order."""

    samples: NDArray[np.int16]
    said: tuple[Said, ...]


def known_clips() -> list[tuple[NDArray[np.int16], str]]:
    """Return every English clip whose words are known; none where the folder of recordings is missing."""
    return [((decode_audio(str(path)) * 32767).astype(np.int16), said) for path, said in known_speech()]


def join(clips: list[tuple[NDArray[np.int16], str]], seconds: float, seed: int) -> Joined:
    """Return clips in an order and with pauses that the seed decides, until there are so many seconds."""
    chance = random.Random(seed)  # noqa: S311 - an order that can be had again, and no secret
    pieces: list[NDArray[np.int16]] = []
    said: list[Said] = []
    at = 0
    while at < seconds * RATE:
        for samples, text in chance.sample(clips, len(clips)):
            between = _LONG_PAUSES if chance.random() < _LONG_SHARE else _PAUSES
            pause = np.zeros(round(chance.uniform(*between) * RATE), np.int16)
            said.append(Said(start=at / RATE, end=(at + len(samples)) / RATE, words=tuple(words_of(text))))
            pieces += [samples, pause]
            at += len(samples) + len(pause)
            if at >= seconds * RATE:
                break
    return Joined(samples=np.concatenate(pieces), said=tuple(said))


def words_of(text: str) -> list[str]:
    """Return the words of a text, such that two ways to write the same words are the same."""
    plain = text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    for digit, word in _DIGITS.items():
        plain = plain.replace(digit, f" {word} ")
    words = re.sub(r"[^\w']+", " ", plain.replace("-", " ")).split()
    return [part for word in words for part in _SPOKEN.get(word.strip("'"), word.strip("'")).split() if part]

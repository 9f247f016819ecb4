"""The two models a slice passes: Silero's detector of speech, and Whisper. Imported by the child alone."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.vad import VadOptions, get_speech_timestamps
from numpy.typing import NDArray

from stages.media.wave64 import RATE
from stages.recognisers.pieces import HOP, WINDOW, Heard
from stages.recognisers.slicing import Samples, Span

_PAUSE = 3 * RATE // 10  # a silence this long parts two spans of speech
_VOTES = 3  # windows that are asked for the language

Audio = NDArray[np.float32]


class ModelUnusable(Exception):
    """The model's folder cannot be loaded."""


class LanguageUnknown(Exception):
    """The model does not know the language it is asked for."""


class Model:
    """A loaded Whisper model."""

    def __init__(self, folder: Path, threads: int) -> None:
        try:
            self._whisper = WhisperModel(
                str(folder), device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True
            )
        except Exception as error:  # tokenizers raises Exception itself for a file it cannot read
            raise ModelUnusable(f"the Whisper model in {folder} cannot be loaded: {error}") from error

    def check_language(self, code: str) -> None:
        """Raise `LanguageUnknown` for a language this model has never learnt."""
        if code not in self._whisper.supported_languages:
            raise LanguageUnknown(f"this Whisper model does not know the language {code!r}")

    def find_language(self, speech: Audio) -> tuple[str, float]:
        """Return the language of speech and its probability: the mean of a few windows spread over it."""
        last = max(0, len(speech) - WINDOW)
        starts = sorted({last * number // (_VOTES - 1) for number in range(_VOTES)})
        votes: dict[str, float] = {}
        for start in starts:
            _, _, said = self._whisper.detect_language(speech[start : start + WINDOW])
            for code, probability in said:
                votes[code] = votes.get(code, 0.0) + probability / len(starts)
        code = max(votes, key=lambda code: votes[code])
        return code, min(1.0, votes[code])

    def recognise(
        self, speech: Audio, parts: Sequence[Span], *, language: str, beam_size: int, hotwords: str
    ) -> Iterator[Heard]:
        """Return the text of each part of the speech alone; the same samples give the same text."""
        segments, _ = self._whisper.transcribe(
            speech,
            language=language,
            beam_size=beam_size,
            temperature=0.0,
            condition_on_previous_text=False,
            hotwords=hotwords or None,
            clip_timestamps=[edge / RATE for edge in itertools.chain.from_iterable(parts)],
        )
        for segment in segments:
            yield Heard(
                window=segment.seek * HOP,
                start=round(segment.start * RATE),
                end=round(segment.end * RATE),
                text=segment.text,
            )


def find_speech(samples: Samples) -> list[Span]:
    """Return the spans of speech, parted by silences of at least 0.3 s."""
    options = VadOptions(min_silence_duration_ms=_PAUSE * 1000 // RATE, speech_pad_ms=0)
    found = get_speech_timestamps(np.divide(samples, 32768, dtype=np.float32), options)
    return [(int(span["start"]), min(int(span["end"]), len(samples))) for span in found]

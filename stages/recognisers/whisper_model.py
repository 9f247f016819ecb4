"""The two models a slice passes: Silero's detector of speech, and Whisper. Imported by the child alone."""

import bisect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from faster_whisper import BatchedInferencePipeline, WhisperModel
from faster_whisper.vad import VadOptions, get_speech_timestamps

from stages.media.wave64 import RATE
from stages.recognisers.hearing import Manner, Window, WindowText
from stages.recognisers.pieces import HeardWord
from stages.recognisers.slicing import Samples, Span

_PAUSE = 3 * RATE // 10  # a silence this long parts two spans of speech
_VOTES = 5  # windows that are asked for the language
_HOP = RATE // 100  # the step of the model's own grid, in samples
_LISTENS_TO = 30 * RATE

# What differs from one manner to another; heard otherwise, no three words are said twice.
_MANNERS: Final[Mapping[Manner, Mapping[str, Any]]] = MappingProxyType(
    {
        Manner.FIRST: {"without_timestamps": True},
        Manner.ALONE: {"without_timestamps": False},
        Manner.OTHERWISE: {"without_timestamps": True, "beam_size": 1, "no_repeat_ngram_size": 3},
    }
)


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
        self._batched = BatchedInferencePipeline(self._whisper)

    def check_language(self, code: str) -> None:
        """Raise `LanguageUnknown` for a language this model has never learnt."""
        if code not in self._whisper.supported_languages:
            raise LanguageUnknown(f"this Whisper model does not know the language {code!r}")

    def find_language(self, windows: Sequence[Window]) -> tuple[str, float]:
        """Return the language of speech and its probability: the mean of a few windows spread over it."""
        spread = {(len(windows) - 1) * vote // (_VOTES - 1) for vote in range(_VOTES)}
        votes: dict[str, float] = {}
        for number in sorted(spread):
            _, _, said = self._whisper.detect_language(windows[number][:_LISTENS_TO])
            for code, probability in said:
                votes[code] = votes.get(code, 0.0) + probability / len(spread)
        code = max(votes, key=lambda code: votes[code])
        return code, min(1.0, votes[code])

    def recognise(
        self,
        windows: Sequence[Window],
        manner: Manner,
        *,
        language: str,
        translate: bool,
        beam_size: int,
        batch_size: int,
        hotwords: str,
    ) -> Iterator[WindowText]:
        """Return the text of each window, by itself; the same windows give the same text."""
        if not windows:
            return
        whole = [np.pad(window, (0, -len(window) % _HOP)) for window in windows]
        starts = np.cumsum([0, *map(len, whole)])
        segments, _ = self._batched.transcribe(
            np.concatenate(whole),
            language=language,
            task="translate" if translate else "transcribe",
            temperature=0.0,
            word_timestamps=True,
            hotwords=hotwords or None,
            batch_size=batch_size,
            # Half a sample more, as the seconds are rounded down to samples again.
            clip_timestamps=[
                {"start": (start + 0.5) / RATE, "end": (start + len(window) + 0.5) / RATE}
                for start, window in zip(starts[:-1], windows, strict=True)
            ],
            **{"beam_size": beam_size, **_MANNERS[manner]},
        )
        found: list[list[Any]] = [[] for _ in windows]
        grid = [int(start) // _HOP for start in starts[:-1]]
        for segment in segments:
            found[bisect.bisect_right(grid, segment.seek + 1) - 1].append(segment)
        for start, said in zip(starts[:-1], found, strict=True):
            yield WindowText(
                words=tuple(_heard(word, int(start)) for segment in said for word in segment.words or ()),
                sureness=min((segment.avg_logprob for segment in said), default=0.0),
                silence=max((segment.no_speech_prob for segment in said), default=0.0),
            )


def _heard(word: Any, start: int) -> HeardWord:  # noqa: ANN401 - the library has no types
    first, last = round(word.start * RATE) - start, round(word.end * RATE) - start
    return HeardWord(
        start=max(0, first), end=max(0, first, last), text=word.word, probability=float(word.probability)
    )


def find_speech(samples: Samples) -> list[Span]:
    """Return the spans of speech, parted by silences of at least 0.3 s."""
    options = VadOptions(min_silence_duration_ms=_PAUSE * 1000 // RATE, speech_pad_ms=0)
    found = get_speech_timestamps(np.divide(samples, 32768, dtype=np.float32), options)
    return [(int(span["start"]), min(int(span["end"]), len(samples))) for span in found]

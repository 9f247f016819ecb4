"""Where a long recording is cut, and which of it is handed to the model; pure arithmetic on samples.

A `Span` is (start, end) in samples, end excluded, counted from the start of the buffer it was found in.
Every decision is made from the samples after the slice's own start alone, so a recognition that goes on
after a restart cuts where an uninterrupted one does.
"""

import bisect
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from stages.media.wave64 import RATE

Samples = NDArray[np.int16]
Span = tuple[int, int]

_FRAME = RATE // 50
_QUIET_FRAMES = 10  # a fifth of a second: about the closure before a stop consonant, and longer


@frozen
class Bounds:
    """How short and how long a slice may be, in samples."""

    shortest: int
    longest: int

    def __attrs_post_init__(self) -> None:
        """Refuse bounds that would leave no room for a cut."""
        if not 0 < self.shortest <= self.longest:
            raise ValueError(f"a slice of {self.shortest} to {self.longest} samples cannot be cut")


def cut(samples: Samples, speech: Sequence[Span], bounds: Bounds) -> int:
    """Return the length of the slice that begins at the buffer's first sample.

    `samples` are all that is left of the audio, or more than `bounds.longest` of it; `speech` are the spans
    found in its first `bounds.longest` samples. What fits in one slice is one slice. Else the cut lies in
    the middle of the longest pause between the bounds, and without any pause where it is quietest.
    """
    if len(samples) <= bounds.longest:
        return len(samples)
    if bounds.shortest == bounds.longest:
        return bounds.longest
    pauses = _pauses(speech, bounds)
    if not pauses:
        return quietest(samples[bounds.shortest : bounds.longest]) + bounds.shortest
    start, end = max(pauses, key=lambda pause: (pause[1] - pause[0], pause[0]))
    return (start + end) // 2


def _pauses(speech: Sequence[Span], bounds: Bounds) -> list[Span]:
    """The stretches without speech between the bounds, shortened to what lies between them."""
    ends = [0, *(end for _, end in speech)]
    starts = [*(start for start, _ in speech), bounds.longest]
    between = [(max(a, bounds.shortest), min(b, bounds.longest)) for a, b in zip(ends, starts, strict=True)]
    return [(a, b) for a, b in between if a < b]


def quietest(samples: Samples) -> int:
    """Return the middle of the fifth of a second with the least energy, the last of equals."""
    frames = len(samples) // _FRAME
    if frames < _QUIET_FRAMES:
        return len(samples)
    squares = np.square(samples[: frames * _FRAME], dtype=np.int64)
    energy = squares.reshape(frames, _FRAME).sum(axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(energy, _QUIET_FRAMES).sum(axis=1)
    last_of_least = len(windows) - 1 - int(np.argmin(windows[::-1]))
    return (last_of_least + _QUIET_FRAMES // 2) * _FRAME


def within(speech: Iterable[Span], length: int) -> list[Span]:
    """Return the spans shortened to the first `length` samples."""
    return [(start, min(end, length)) for start, end in speech if start < min(end, length)]


def widened(speech: Sequence[Span], length: int, *, pause: int, margin: int, edge: int) -> list[Span]:
    """Join spans less than `pause` apart and give each `margin` on both sides, within `length` samples.

    The margins of neighbours meet at most in the middle of their pause. Before the first span and after the
    last one lies `edge` instead.
    """
    if not speech:
        return []
    joined: list[Span] = []
    for start, end in speech:
        if joined and start - joined[-1][1] < pause:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    middles = [(a[1] + b[0]) // 2 for a, b in itertools.pairwise(joined)]
    lows, highs = [0, *middles], [*middles, length]
    before = [edge, *(margin for _ in middles)]
    return [
        (max(low, start - left), min(high, end + right))
        for (start, end), low, high, left, right in zip(
            joined, lows, highs, before, reversed(before), strict=True
        )
    ]


@frozen
class Packed:
    """Spans of speech put side by side, and the way back from a place there to its place in the slice."""

    spans: tuple[Span, ...]
    _ends: list[int] = field(init=False)

    @_ends.default
    def _end_of_each(self) -> list[int]:
        return list(itertools.accumulate(end - start for start, end in self.spans))

    @property
    def length(self) -> int:
        """The samples of all spans together."""
        return self._ends[-1] if self._ends else 0

    def audio(self, samples: Samples) -> NDArray[np.float32]:
        """Return the spans' samples side by side, from -1 to 1."""
        pieces = [samples[start:end] for start, end in self.spans]
        whole = np.concatenate(pieces) if pieces else np.empty(0, np.int16)
        return np.divide(whole, 32768, dtype=np.float32)

    def stretches(self, pause: int) -> list[Span]:
        """Return the packed parts between pauses of at least `pause` samples; together they are all of it."""
        pauses = (b[0] - a[1] for a, b in itertools.pairwise(self.spans))
        behind = [end for end, length in zip(self._ends[:-1], pauses, strict=True) if length >= pause]
        edges = [0, *behind, self.length]
        return list(itertools.pairwise(edges)) if self.spans else []

    def place(self, sample: int, *, is_end: bool = False) -> int:
        """Return where a packed sample lies in the slice; an end on a seam ends the span before it."""
        sample = min(max(sample, 0), self.length)
        find = bisect.bisect_left if is_end else bisect.bisect_right
        index = min(find(self._ends, sample), len(self.spans) - 1)
        return self.spans[index][1] - (self._ends[index] - sample)

"""What the model hears at once: speech put side by side for up to half a minute, cut where people pause.

Whisper listens to 30 s at a time. Windows of our own, cut in the longest pauses, end in no word and depend on
no window before them, so they can be worked out side by side, and one that comes out wrong spoils no other.
"""

import itertools
from collections.abc import Iterator, Sequence

from stages.media.wave64 import RATE
from stages.recognisers.slicing import Packed, Samples, Span, quietest, widened

LONGEST = 28 * RATE  # two seconds less than the model hears: it errs at the very end
_SHORTEST = 14 * RATE
_KEPT_PAUSE = 2 * RATE  # a shorter silence stays in what the model hears
_MARGIN = 4 * RATE // 10  # kept around speech, so that no first or last sound is lost
_EDGE = 8 * RATE // 10  # before a window's first word and after its last: cut closer, the model errs in them


def windows_of(samples: Samples, speech: Sequence[Span]) -> list[Packed]:
    """Return windows that hold all the speech, in order; each speech span is in one window."""
    spans = [part for span in speech for part in _short_enough(samples, span)]
    groups = list(_groups(spans))
    edges = [(before[-1][1] + after[0][0]) // 2 for before, after in itertools.pairwise(groups)]
    return [
        Packed(tuple(_widened(group, low, high)))
        for group, low, high in zip(groups, [0, *edges], [*edges, len(samples)], strict=False)
    ]


def _short_enough(samples: Samples, span: Span) -> Iterator[Span]:
    """Yield a span of speech in parts that fit in a window, cut where it is quietest."""
    start, end = span
    while end - start > LONGEST - 2 * _EDGE:
        earliest, latest = start + _SHORTEST, start + LONGEST - 2 * _EDGE
        cut = earliest + quietest(samples[earliest:latest])
        yield start, cut
        start = cut
    yield start, end


def _groups(spans: Sequence[Span]) -> Iterator[Sequence[Span]]:
    """Yield runs of spans, as many as fit, each ended in the longest pause of its second half."""
    first = 0
    while first < len(spans):
        fitting = _fitting(spans, first)
        last = fitting
        if fitting < len(spans):
            ends = [n for n in range(first + 1, fitting + 1) if _length(spans[first:n]) >= _SHORTEST]
            last = max(ends or [fitting], key=lambda n: (spans[n][0] - spans[n - 1][1], n))
        yield spans[first:last]
        first = last


def _fitting(spans: Sequence[Span], first: int) -> int:
    """Return the end of the longest run from `first` on that fits in a window; at least one span."""
    end = first + 1
    while end < len(spans) and _length(spans[first : end + 1]) <= LONGEST:
        end += 1
    return end


def _length(spans: Sequence[Span]) -> int:
    """Return how long a run of spans is in its window, edges and all."""
    pauses = (after[0] - before[1] for before, after in itertools.pairwise(spans))
    kept = sum(pause if pause < _KEPT_PAUSE else 2 * _MARGIN for pause in pauses)
    return sum(end - start for start, end in spans) + kept + 2 * _EDGE


def _widened(group: Sequence[Span], low: int, high: int) -> list[Span]:
    inside = [(start - low, end - low) for start, end in group]
    wide = widened(inside, high - low, pause=_KEPT_PAUSE, margin=_MARGIN, edge=_EDGE)
    return [(start + low, end + low) for start, end in wide]

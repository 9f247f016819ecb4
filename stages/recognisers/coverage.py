"""Which speech has no text: the spans of the voice detector, less what the words can account for."""

import itertools
from collections.abc import Iterable, Sequence

from stages.media.wave64 import RATE
from stages.recognisers.pieces import HeardWord
from stages.recognisers.slicing import Span

LEAST_HOLE = RATE // 2  # of speech: less may be a breath, or a word whose times are a little off
_PAD = RATE // 4  # words' times err by as much
_SLOWEST_WORD, _SLOWEST_LETTER = 5 * RATE // 10, RATE // 10  # nobody takes longer over a word of text
_BREATH = RATE  # holes less than this apart are one


def holes(speech: Sequence[Span], words: Iterable[HeardWord], least: int = LEAST_HOLE) -> list[Span]:
    """Return the stretches, from speech to speech, in which `least` samples of speech have no text."""
    return runs(_less(speech, _joined(sorted(map(_accounted, words)))), least)


def runs(spans: Iterable[Span], least: int = LEAST_HOLE) -> list[Span]:
    """Join spans that are but a breath apart, and return those of which there are `least` samples or more."""
    found: list[list[Span]] = []
    for span in spans:
        if found and span[0] - found[-1][-1][1] < _BREATH:
            found[-1].append(span)
        else:
            found.append([span])
    return [(run[0][0], run[-1][1]) for run in found if length(run) >= least]


def within(spans: Sequence[Span], low: int, high: int) -> list[Span]:
    """Return the parts of spans that lie between two samples."""
    return [(max(start, low), min(end, high)) for start, end in spans if max(start, low) < min(end, high)]


def length(spans: Iterable[Span]) -> int:
    """Return the samples of spans together."""
    return sum(end - start for start, end in spans)


def longest_of(word: HeardWord) -> int:
    """Return the samples that a word can take at the most."""
    return _SLOWEST_WORD + _SLOWEST_LETTER * len(word.text.strip())


def _accounted(word: HeardWord) -> Span:
    """The part of the audio that a word accounts for: its time, but no more than it can take."""
    return word.start - _PAD, min(word.end, word.start + longest_of(word)) + _PAD


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _less(speech: Sequence[Span], covered: Sequence[Span]) -> list[Span]:
    """Return what of the speech is not covered; both in order."""
    edges = [-RATE, *itertools.chain.from_iterable(covered), (speech[-1][1] if speech else 0) + RATE]
    free = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
    return sorted(part for start, end in free for part in within(speech, start, end))

"""Words in their places: from where the model puts them in a window to pieces of text in the slice."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve, frozen

from stages.media.wave64 import RATE
from stages.recognisers.slicing import Packed, Span

_SENTENCE_ENDS = (".", "?", "!", "…", "。", "\uff1f", "\uff01")
_CLAUSE_ENDS = (",", ";", ":", "、", "\uff0c", "\uff1b", "\uff1a")
_LEAST = RATE  # a piece shorter than this waits for more, unless a pause follows
_PAUSE = 8 * RATE // 10  # ends a piece wherever it is
_LONG = 10 * RATE  # from here on a piece ends at a comma,
_LONGEST = 15 * RATE  # and from here on at any word
_FAR = RATE // 2  # the two detectors differ by less about where speech is


@frozen(kw_only=True)
class HeardWord:
    """A word, with its spaces as they are written, and where it is, in samples."""

    start: int
    end: int
    text: str
    probability: float


@frozen(kw_only=True)
class Piece:
    """A few words that belong together."""

    words: tuple[HeardWord, ...]

    @property
    def start(self) -> int:
        """Where its first word begins."""
        return self.words[0].start

    @property
    def end(self) -> int:
        """Where its last word ends."""
        return self.words[-1].end

    @property
    def text(self) -> str:
        """What is said."""
        return "".join(word.text for word in self.words).strip()


def placed(words: Iterable[HeardWord], packed: Packed, speech: Sequence[Span]) -> list[HeardWord]:
    """Return a window's words at their places in the slice, each in the speech it is nearest to.

    What lies far from all speech was said by nobody, and is left out.
    """
    found = []
    for word in words:
        start, end = _on_one_side(word, packed)
        near = min(speech, key=lambda span: (_apart(span, start, end), -_shared(span, start, end)))
        if _apart(near, start, end) <= _FAR:
            start, end = _drawn(near, start, end)
            found.append(evolve(word, start=start, end=end, text=word.text.replace("\0", "")))
    return found


def in_order(words: Iterable[HeardWord]) -> list[HeardWord]:
    """Return words by their time, none beginning before the one before it has begun, and none overlapping."""
    ordered: list[HeardWord] = []
    behind = 0
    for word in sorted(words, key=lambda word: (word.start, word.end)):
        start = max(word.start, behind)
        behind = max(start, word.end)
        ordered.append(evolve(word, start=start, end=behind))
    return ordered


def pieces(words: Sequence[HeardWord]) -> Iterator[Piece]:
    """Part words into pieces: at the ends of sentences, in pauses, and before a piece grows too long."""
    piece: list[HeardWord] = []
    for word, after in itertools.zip_longest(words, words[1:]):
        piece.append(word)
        if after is None or _ends(piece, after):
            whole = Piece(words=tuple(piece))
            if whole.text:
                yield whole
            piece = []


def _ends(piece: Sequence[HeardWord], after: HeardWord) -> bool:
    last, seconds = piece[-1].text.rstrip(), piece[-1].end - piece[0].start
    if after.start - piece[-1].end >= _PAUSE:
        return True
    if not after.text[:1].isspace() and last.isascii():
        return False  # the middle of a word
    ends = last.endswith(_SENTENCE_ENDS) and seconds >= _LEAST
    return ends or (seconds >= _LONG and last.endswith(_CLAUSE_ENDS)) or seconds >= _LONGEST


def _on_one_side(word: HeardWord, packed: Packed) -> Span:
    """The word's place in the slice; over a seam, the side that has more of it."""
    low, high = max(0, word.start), min(word.end, packed.length)
    parts = [(max(a, low), min(b, high)) for a, b in packed.stretches(1)]
    start, end = max(parts, key=lambda part: part[1] - part[0])
    if start > end:  # after everything, or before it
        start = end = min(max(low, 0), packed.length)
    return packed.place(start), max(packed.place(start), packed.place(end, is_end=True))


def _shared(span: Span, start: int, end: int) -> int:
    return min(span[1], end) - max(span[0], start)


def _apart(span: Span, start: int, end: int) -> int:
    return max(0, span[0] - end, start - span[1])


def _drawn(span: Span, start: int, end: int) -> Span:
    """A word's time without the silence around speech; one beside all speech keeps its own."""
    if _shared(span, start, end) <= 0:
        return start, end
    return max(start, span[0]), min(end, span[1])

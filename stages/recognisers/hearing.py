"""How speech is heard so that none of it is lost silently: all of it once, and what has no text again.

What is left without text after that is a gap, and says why. No I/O: the model is a function.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from attrs import define, field, frozen
from numpy import float32
from numpy.typing import NDArray

from stages.media.wave64 import RATE
from stages.recognisers.coverage import holes, length, longest_of, runs, within
from stages.recognisers.loops import runs_in_a_circle
from stages.recognisers.pieces import HeardWord, in_order, placed
from stages.recognisers.slicing import Packed, Samples, Span
from stages.recognisers.windows import windows_of
from storage.record import Gap

_AGAIN_SECONDS, _AGAIN_SHARE = 60, 0.5  # at the most so much speech of a slice is heard again in one manner
_NO_SPEECH, _UNSURE, _GUESS = 0.6, -1.0, -1.5  # the model's own doubt, as its makers use it
_DRAWN_OUT = 3 * RATE // 2  # so much of a hole may be the rest of a word that is there already
_AROUND = RATE // 4  # heard with a hole, so that its first and last sounds are whole


class Manner(Enum):
    """How a window is heard."""

    FIRST = "first"
    ALONE = "alone"  # as the first time, but nothing else in the window
    OTHERWISE = "otherwise"  # narrower, and without repeating itself


@frozen(kw_only=True)
class WindowText:
    """What the model makes of a window: words by their place in it, and how sure it is."""

    words: tuple[HeardWord, ...]
    sureness: float  # mean logarithm of the probability
    silence: float  # probability that nobody speaks


Window = NDArray[float32]
Recognise = Callable[[Sequence[Window], Manner], Iterator[WindowText]]


@frozen(kw_only=True)
class GapFound:
    """Speech without text, in samples, and why."""

    start: int
    end: int
    why: Gap


@frozen(kw_only=True)
class Heard:
    """All that is in some speech.

    `again` are the samples that were heard again, `dropped` the windows whose text was not believed.
    """

    words: tuple[HeardWord, ...]
    gaps: tuple[GapFound, ...]
    again: int
    dropped: int


@define
class Hearing:
    """Hears the speech of one side of a slice.

    The words of a text that does not follow the speech, a translation, have no times worth a look: there a
    window has its text or has none.
    """

    samples: Samples
    speech: Sequence[Span]
    recognise: Recognise
    follows_speech: bool = True
    _words: list[HeardWord] = field(factory=list, init=False)
    _answered: list[Span] = field(factory=list, init=False)
    _looped: list[Span] = field(factory=list, init=False)
    _again: int = field(default=0, init=False)
    _dropped: int = field(default=0, init=False)

    def hear(self) -> Heard:
        """Return the text of all speech, and the gaps."""
        self._words += self._heard_in(self.speech, Manner.FIRST)
        left = self._left(self.speech)
        for manner in (Manner.ALONE, Manner.OTHERWISE):
            left = self._filled(left, manner)
        gaps = tuple(GapFound(start=start, end=end, why=self._why((start, end))) for start, end in left)
        return Heard(words=tuple(in_order(self._words)), gaps=gaps, again=self._again, dropped=self._dropped)

    def _filled(self, left: Sequence[Span], manner: Manner) -> list[Span]:
        """Hear holes again; return those that are left."""
        budget = max(_AGAIN_SECONDS * RATE, int(_AGAIN_SHARE * length(self.speech)))
        remaining: list[Span] = []
        for hole in left:
            speech = within(self.speech, hole[0] - _AROUND, hole[1] + _AROUND)
            if length(speech) > budget:
                remaining.append(hole)
                continue
            budget -= length(speech)
            self._again += length(speech)
            remaining += self._fill(hole, speech, manner)
        return remaining

    def _fill(self, hole: Span, speech: Sequence[Span], manner: Manner) -> list[Span]:
        heard = self._heard_in(speech, manner)
        new = [word for word in heard if hole[0] <= (word.start + word.end) // 2 < hole[1]]
        fresh = self._without_echo(new, hole)
        self._words += fresh
        inside = within(self.speech, *hole)
        if new and not fresh and length(inside) <= _DRAWN_OUT:
            return []  # a word that is drawn out, and nothing else
        return self._left(inside)

    def _left(self, speech: Sequence[Span]) -> list[Span]:
        if self.follows_speech:
            return holes(speech, self._words)
        return runs(span for span in speech if not self._is_answered((span[0] + span[1]) // 2))

    def _is_answered(self, place: int) -> bool:
        return any(low <= place < high for low, high in self._answered)

    def _without_echo(self, new: list[HeardWord], hole: Span) -> list[HeardWord]:
        """Leave out words that are there already: a neighbour whose time reaches into the hole."""
        reaching = {
            _plain(word)
            for word in self._words
            if word.end - word.start > longest_of(word) and word.start < hole[1] and word.end > hole[0]
        }
        while new and _plain(new[0]) in reaching:
            new = new[1:]
        while new and _plain(new[-1]) in reaching:
            new = new[:-1]
        return new

    def _heard_in(self, speech: Sequence[Span], manner: Manner) -> list[HeardWord]:
        windows = windows_of(self.samples, speech)
        texts = self.recognise([window.audio(self.samples) for window in windows], manner)
        return [
            word for window, text in zip(windows, texts, strict=True) for word in self._believed(window, text)
        ]

    def _believed(self, window: Packed, text: WindowText) -> list[HeardWord]:
        if runs_in_a_circle([word.text for word in text.words]):
            self._looped.append((window.spans[0][0], window.spans[-1][1]))
            self._dropped += 1
            return []
        unsure = text.silence > _NO_SPEECH and text.sureness < _UNSURE
        if text.words and (unsure or text.sureness < _GUESS):
            self._dropped += 1
            return []
        if text.words:
            self._answered.append((window.spans[0][0], window.spans[-1][1]))
        return placed(text.words, window, self.speech)

    def _why(self, gap: Span) -> Gap:
        looped = any(max(gap[0], start) < min(gap[1], end) for start, end in self._looped)
        return Gap.REPETITION if looped else Gap.NO_TEXT


def _plain(word: HeardWord) -> str:
    return "".join(filter(str.isalnum, word.text.casefold()))

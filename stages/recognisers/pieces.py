"""From what the model hears in packed speech to pieces of text at their own places in the slice.

Whisper hears packed speech as one and may join what a long silence parts, or let a piece reach over it:
such a piece is put back on its side of the silence, or, if there is speech of it on both sides, heard again.
It may also invent text for the silence left at an end: such text is told from speech by where it listened.
"""

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

from attrs import evolve, frozen

from stages.media.wave64 import RATE
from stages.recognisers.slicing import Packed, Span

HOP = RATE // 100  # the step of the model's own grid, in samples
WINDOW = 30 * RATE  # what the model hears at once
_FASTEST = 40  # characters a second: nobody speaks so fast, a model in a loop does
_BLIP = RATE // 10  # the two detectors differ by as much about where speech ends


@frozen(kw_only=True)
class Heard:
    """A piece of text and where it is, in samples; `window` is where the model began to listen for it."""

    window: int
    start: int
    end: int
    text: str
    invented: bool = False


Recognise = Callable[[Sequence[Span]], Iterable[Heard]]


@frozen(kw_only=True)
class Hearing:
    """How packed speech is heard: no piece on both sides of a pause of `parting_pause` samples or more.

    `speech` are the bare spans of speech in the slice, without the margins of `packed`. A piece that reaches
    at most `silent_reach` over a parting pause holds no speech there.
    """

    packed: Packed
    speech: Sequence[Span]
    parting_pause: int
    silent_reach: int

    def pieces(self, recognise: Recognise) -> Iterator[Heard]:
        """Yield what is heard, at its places in the packed speech and what is invented marked so.

        `recognise` is given parts of the packed speech and returns what is in each of them.
        """
        stretches = self.packed.stretches(self.parting_pause)
        whole = (0, self.packed.length)
        for piece in recognise([whole]):
            sides = _sides(piece, stretches, self.silent_reach)
            if self._is_invented(piece, whole):
                yield evolve(piece, invented=True)
            elif len(sides) == 1:
                yield _inside(piece, sides[0])
            else:
                yield from self._heard_again(piece, sides, recognise)

    def _heard_again(self, piece: Heard, sides: Sequence[Span], recognise: Recognise) -> Iterator[Heard]:
        again = [(part, _listened_to(part, sides)) for part in recognise(sides)]
        if again and not any(self._is_invented(part, side) for part, side in again):
            yield from (_inside(part, side) for part, side in again)
        else:
            yield piece  # text at a vague time is better than none

    def _is_invented(self, piece: Heard, part: Span) -> bool:
        """Whether the model listened to no speech, or says more than can be said in the time it listened."""
        end = min(piece.window + WINDOW, part[1])
        if len(piece.text) * RATE > _FASTEST * (end - piece.window):
            return True
        first, last = self.packed.place(piece.window), self.packed.place(end, is_end=True)
        return not any(min(b, last) - max(a, first) > min(_BLIP, b - a - 1) for a, b in self.speech)


def tidy(pieces: Iterable[Heard], packed: Packed) -> Iterator[Heard]:
    """Put pieces at their places in the slice: with text, in order and never overlapping."""
    behind = 0
    for piece in pieces:
        text = piece.text.replace("\0", "").strip()
        if text:
            start = max(behind, packed.place(piece.start))
            behind = max(start, packed.place(piece.end, is_end=True))
            yield evolve(piece, start=start, end=behind, text=text)


def _sides(piece: Heard, stretches: Sequence[Span], silent_reach: int) -> list[Span]:
    """The parts of a piece in each stretch that has speech of it; at least one."""
    parts = [(max(a, piece.start), min(b, piece.end)) for a, b in stretches]
    spoken = [part for part in parts if part[1] - part[0] > silent_reach]
    return spoken or [max(parts, key=lambda part: part[1] - part[0])]


def _listened_to(piece: Heard, parts: Sequence[Span]) -> Span:
    """The part whose text a piece is; a part begins where the grid is nearest."""
    return parts[max(0, bisect.bisect_right(parts, piece.window + HOP // 2, key=itemgetter(0)) - 1)]


def _inside(piece: Heard, part: Span) -> Heard:
    low, high = part
    return evolve(piece, start=min(max(piece.start, low), high), end=min(max(piece.end, low), high))

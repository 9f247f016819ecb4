"""A corrected text with the times of the words that were heard. No I/O.

Words that stay keep their times; those that came instead of others share the time of these; one that came
from nowhere has the moment between its neighbours.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from storage.record import Word

_WORD = re.compile(r"\s*\S+")
_NOT_LETTERS = re.compile(r"[^\w]+")
_MOST_WORDS = 2000  # beyond this no segment is speech, and comparing would take long


def aligned(heard: Sequence[Word], text: str, start: float, end: float) -> tuple[Word, ...]:
    """Return the words of `text` with times from `start` to `end`; they come in order, and none overlaps.

    A word that nobody heard has the probability 1: its owner is sure.
    """
    said = _WORD.findall(text)
    if not said:
        return ()
    if not heard or len(said) > _MOST_WORDS or len(heard) > _MOST_WORDS:
        return tuple(_shared(said, start, end))
    return tuple(_matched(heard, said, start, end))


def _matched(heard: Sequence[Word], said: Sequence[str], start: float, end: float) -> Iterator[Word]:
    keys = [_key(word.text) for word in heard], [_key(word) for word in said]
    matcher = SequenceMatcher(None, *keys, autojunk=False)
    for kind, first, last, begin, stop in matcher.get_opcodes():
        if kind == "equal":
            for word, text in zip(heard[first:last], said[begin:stop], strict=True):
                yield Word(start=word.start, end=word.end, text=text, probability=word.probability)
        else:
            since = heard[first].start if first < last else heard[first - 1].end if first else start
            until = heard[last - 1].end if first < last else since if first else heard[0].start
            yield from _shared(said[begin:stop], since, min(max(until, since), max(end, since)))


def _shared(words: Sequence[str], start: float, end: float) -> Iterator[Word]:
    """Share a stretch of time among words by their letters."""
    whole, place = sum(map(len, words)), 0
    for word in words:
        since = start + (end - start) * place / whole
        place += len(word)
        yield Word(start=since, end=start + (end - start) * place / whole, text=word, probability=1.0)


def _key(word: str) -> str:
    return _NOT_LETTERS.sub("", word).casefold() or word.strip()

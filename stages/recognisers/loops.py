"""A model that runs in a circle: told by its text alone."""

import zlib
from collections.abc import Sequence

_COMPRESSION = 2.4  # text that packs better than this says the same again and again
_LEAST_LETTERS = 40  # of which packing says anything
_LONGEST_PHRASE = 8  # words
_REPEATS = 5  # of a phrase of two words and more, in a row
_WORD_REPEATS = 10  # of a single one: people do say no, no, no, no


def runs_in_a_circle(words: Sequence[str]) -> bool:
    """Tell whether a window's words are a loop of the model's and not what somebody says."""
    text = " ".join(word.strip() for word in words)
    return _compression(text) > _COMPRESSION or _repeats(words)


def _compression(text: str) -> float:
    packed = text.encode()
    return len(packed) / len(zlib.compress(packed)) if len(text) >= _LEAST_LETTERS else 1.0


def _repeats(words: Sequence[str]) -> bool:
    plain = ["".join(filter(str.isalnum, word.casefold())) for word in words]
    return any(
        _longest_run(plain, length) >= (_WORD_REPEATS if length == 1 else _REPEATS)
        for length in range(1, _LONGEST_PHRASE + 1)
    )


def _longest_run(words: Sequence[str], length: int) -> int:
    """Return how often in a row the same phrase of so many words is said."""
    longest = run = 0
    for place in range(len(words) - length):
        run = run + 1 if words[place] == words[place + length] else 0
        longest = max(longest, run)
    return longest // length + 1

"""Telling what is new from what is said over and over."""

from collections import OrderedDict
from collections.abc import Hashable

QUIET_SECONDS = 60.0
_MOST_KNOWN = 256


class Repeats:
    """Lets the same word through once a minute, and counts those in between. Knows so many words at most."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._said: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def heard(self, word: Hashable, now: float) -> int | None:
        """Return how often `word` was kept back since it was let through last; None to keep it back now."""
        last, kept_back = self._said.get(word, (None, 0))
        if last is not None and now - last < QUIET_SECONDS:
            self._said[word] = last, kept_back + 1
            return None
        self._said.pop(word, None)
        self._said[word] = now, 0
        if len(self._said) > _MOST_KNOWN:
            self._said.popitem(last=False)
        return kept_back

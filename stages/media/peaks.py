"""The outline of a recording, to be drawn: how far each stretch of it reaches from silence, down and up."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_PEAKS = 4000  # whatever the length: more than a screen has columns


class Peaks:
    """Gathers the peaks of `samples` samples, handed over in order, shape (sides, n)."""

    def __init__(self, samples: int) -> None:
        self._stretch = max(1, -(-samples // MOST_PEAKS))
        count = -(-samples // self._stretch)
        self._least = np.zeros(count, np.int16)
        self._greatest = np.zeros(count, np.int16)
        self._place = 0

    def add(self, block: NDArray[np.int16]) -> None:
        """Take the next samples; of several sides the one that reaches further counts."""
        length = block.shape[1]
        if not length:
            return
        first = self._place // self._stretch
        last = (self._place + length - 1) // self._stretch
        begins = np.maximum(np.arange(first, last + 1) * self._stretch - self._place, 0)
        for kept, fold, sides in (
            (self._least, np.minimum, block.min(axis=0)),
            (self._greatest, np.maximum, block.max(axis=0)),
        ):
            part: NDArray[Any] = kept[first : last + 1]
            fold(part, fold.reduceat(sides, begins), out=part)
        self._place += length

    def as_bytes(self) -> bytes:
        """Return the pairs, down and up, as signed bytes."""
        pairs = np.column_stack((self._least, self._greatest))
        return (pairs >> 8).astype(np.int8).tobytes()

"""The recognition copy in the making: one sound of all sides, or the two sides of a call kept apart.

Which of the two it is is known when all was heard. So both are written while both are possible, and the one
that is not wanted is gone before anybody could see it.
"""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from stages.media.messages import Channels
from stages.media.sides import Likeness, Weighing
from stages.media.wave64 import RATE, Writer

_JUDGED_EVERY = 30 * RATE  # samples
_TWICE = (Likeness.SAME, Likeness.MIRRORED)


class CopyWriter:
    """Writes the copy at `path`; left without `finish`, nothing of it stays."""

    def __init__(self, path: Path, channels: Channels) -> None:
        """Begin; `channels` says what is wanted of a recording with two sides."""
        self._path, self._channels = path, channels
        self._opened = ExitStack()
        self._mono = self._opened.enter_context(Writer(path))
        self._apart: Writer | None = None
        self._weighing: Weighing | None = None
        self._judged_next = _JUDGED_EVERY
        self._together = False  # for so long that they will not turn out to be a call

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    @property
    def samples(self) -> int:
        """The samples written so far, of each side."""
        return self._mono.samples

    @property
    def likeness(self) -> Likeness | None:
        """What the sides are to each other; None where there is one."""
        return None if self._weighing is None else self._weighing.likeness

    def write(self, block: NDArray[np.int16]) -> None:
        """Append samples, shape (sides, n)."""
        if len(block) == 1:
            self._mono.write(block[0])
            return
        if self._weighing is None:
            self._begin_sides()
        assert self._weighing is not None  # noqa: S101 - it has just begun
        if self._apart is not None:
            self._apart.write(block)
        self._mono.write(self._weighing.add(block, levels=not self._together))
        if not self._together and self.samples >= self._judged_next:
            self._judged_next = self.samples + _JUDGED_EVERY
            self._together = self._weighing.is_hopeless
            if self._together and self._channels is Channels.AUTO:
                self._drop_sides()

    def write_silence(self, samples: int) -> None:
        """Append that many samples of silence on every side."""
        self._mono.write_silence(samples)
        if self._apart is not None:
            self._apart.write_silence(samples)

    def finish(self) -> int:
        """Make the copy whole and durable and give it its name; return how many sides it has."""
        if self._apart is not None and self._keeps_sides():
            self._mono.drop()
            self._apart.finish()
            return 2
        self._drop_sides()
        self._mono.finish()
        return 1

    def _begin_sides(self) -> None:
        self._weighing = Weighing()
        if self._channels is not Channels.MIX:
            self._apart = self._opened.enter_context(Writer(self._path, sides=2))
            self._apart.write_silence(self._mono.samples)

    def _drop_sides(self) -> None:
        if self._apart is not None:
            self._apart.drop()
            self._apart = None

    def _keeps_sides(self) -> bool:
        if self._channels is Channels.SPLIT:
            return self.likeness not in _TWICE
        return self.likeness is Likeness.APART

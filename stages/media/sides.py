"""The two sides of a recording, weighed against each other: one sound, or two to be kept apart. No I/O.

A call has a person on each side, and while one speaks the other side is far quieter. A microphone's two sides
hear everybody. Telling them apart needs no model: how loud each side is, a tenth of a second at a time,
against its own loudest, and how alike the two waves are over all.
"""

from enum import StrEnum

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from stages.media.wave64 import RATE

_STEP = RATE // 10
_STEPS_A_SECOND = RATE // _STEP
_BINS, _BIN_DB = 32, 3.0  # of level, down from full scale
_FULL_SCALE = 32768.0**2
_LEAST_STEPS = 3  # what is loud for less is a click

_ALIKE = 0.98  # of the waves' correlation: the same sound on both sides, but for rounding
_MIRRORED = -0.9
_CALL_UNLIKE = 0.3
_ABSENT_DB = 40.0  # so far under the other one, a side is a cable's crosstalk
_SILENT_DB = 66.0  # under full scale
_ACTIVE_DB = 24.0  # under its own loudest, somebody may still be speaking
_LEADS_DB = 15.0  # over the other one: it is a side's own, no echo and no neighbour's microphone
_LED_SHARE = 0.7
_LED_SECONDS = 1.0  # each side has something of its own to say
_HOPELESS_SECONDS, _HOPELESS_SHARE = 120.0, 0.2
_CANCELLED = 0.01  # a mix 20 dB under its louder side: the sides are each other's mirror image

Samples = NDArray[np.int16]
Sums = NDArray[np.float32]


class Likeness(StrEnum):
    """How the two sides of a recording are to each other."""

    SAME = "same"  # one sound twice
    MIRRORED = "mirrored"  # one sound and its negative, which cancel in a mix
    ONE_SIDED = "one_sided"  # sound on one side alone
    APART = "apart"  # two that take turns, as in a call
    MIXED = "mixed"  # one room, or music


def mix(block: Samples) -> Samples:
    """Mix samples of shape (sides, n) into (n,); where two sides cancel out, take the louder one."""
    if len(block) == 1:
        return block[0, :]
    return _mixed(block, _products(block.astype(np.float32)))


def mix_whole(samples: Samples) -> Samples:
    """Mix samples of any length, shape (sides, n), a second at a time from the first one on."""
    if len(samples) == 1:
        return samples[0, :]
    starts = range(0, samples.shape[1], RATE)
    return np.concatenate([mix(samples[:, start : start + RATE]) for start in starts] or [samples[0, :]])


@frozen
class _Products:
    """The sums of each side with itself, and of one with the other."""

    left: float = 0.0
    right: float = 0.0
    both: float = 0.0

    def __add__(self, more: "_Products") -> "_Products":
        return _Products(self.left + more.left, self.right + more.right, self.both + more.both)


def _products(wide: Sums) -> _Products:
    # Three products of vectors: for so few rows that of matrices is slow.
    left, right = wide[0, :], wide[1, :]
    return _Products(float(left @ left), float(right @ right), float(left @ right))


def _mixed(block: Samples, of: _Products) -> Samples:
    if (of.left + of.right + 2 * of.both) / 4 < _CANCELLED * max(of.left, of.right):
        return block[0, :] if of.left >= of.right else block[1, :]
    both = block[0, :].astype(np.int32) + block[1, :]
    return (both >> 1).astype(np.int16)


class Weighing:
    """Takes a recording's blocks of two sides one by one; constant memory."""

    def __init__(self) -> None:
        """Begin with nothing heard."""
        self._products = _Products()
        self._levels = np.zeros((_BINS, _BINS), np.int64)  # steps, by the level of each side

    def add(self, block: Samples, *, levels: bool = True) -> Samples:
        """Take samples of shape (2, n) and return their mix, shape (n,): both need the same sums.

        Without `levels` nothing is learnt of who speaks when: for sides that are known to be together.
        """
        wide = block.astype(np.float32)
        products = _products(wide)
        self._products += products
        if levels:
            self._count(wide)
        return _mixed(block, products)

    def _count(self, wide: Sums) -> None:
        steps = wide.shape[1] // _STEP
        if steps:
            cut = wide[:, : steps * _STEP].reshape(2, steps, _STEP)
            power = np.einsum("ijk,ijk->ij", cut, cut) / (_STEP * _FULL_SCALE)
            down = np.minimum(-10 * np.log10(power + 1e-12) / _BIN_DB, _BINS - 1).astype(np.intp)
            np.add.at(self._levels, (down[0], down[1]), 1)

    @property
    def likeness(self) -> Likeness:
        """What the sides are to each other, as far as they were heard."""
        left, right = self._loudest()
        if min(left, right) >= _SILENT_DB:
            return Likeness.SAME  # nothing on either
        if max(left, right) >= _SILENT_DB or abs(left - right) >= _ABSENT_DB:
            return Likeness.ONE_SIDED
        correlation = self._correlation()
        if correlation >= _ALIKE:
            return Likeness.SAME
        if correlation <= _MIRRORED:
            return Likeness.MIRRORED
        led_left, led_right, active = self._led()
        apart = (
            abs(correlation) <= _CALL_UNLIKE
            and led_left + led_right >= _LED_SHARE * active
            and min(led_left, led_right) >= _LED_SECONDS * _STEPS_A_SECOND
        )
        return Likeness.APART if apart else Likeness.MIXED

    @property
    def is_hopeless(self) -> bool:
        """True when the sides have been together for so long that they will not turn out to be apart."""
        led_left, led_right, active = self._led()
        long_enough = active >= _HOPELESS_SECONDS * _STEPS_A_SECOND
        return long_enough and led_left + led_right < _HOPELESS_SHARE * active

    def _loudest(self) -> tuple[float, float]:
        """Return how far under full scale each side's loudest steps are, clicks left out, in dB."""
        left, right = (np.cumsum(self._levels.sum(axis=other)) for other in (1, 0))
        first = (int(np.searchsorted(each, min(_LEAST_STEPS, max(each[-1], 1)))) for each in (left, right))
        one, other = (at * _BIN_DB for at in first)
        return one, other

    def _correlation(self) -> float:
        power = self._products.left * self._products.right
        return self._products.both / power**0.5 if power else 0.0

    def _led(self) -> tuple[int, int, int]:
        """Return the steps that each side leads alone, and those in which anybody is heard."""
        left, right = self._loudest()
        down = np.arange(_BINS) * _BIN_DB
        under_left, under_right = (down - left)[:, np.newaxis], (down - right)[np.newaxis, :]
        left_active = (under_left <= _ACTIVE_DB) & np.ones_like(under_right, bool)
        right_active = (under_right <= _ACTIVE_DB) & np.ones_like(under_left, bool)
        leads = under_right - under_left
        led_left = self._levels[left_active & (leads >= _LEADS_DB)].sum()
        led_right = self._levels[right_active & (leads <= -_LEADS_DB)].sum()
        return int(led_left), int(led_right), int(self._levels[left_active | right_active].sum())

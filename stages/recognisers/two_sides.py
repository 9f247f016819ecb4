"""The two sides of a call, heard apart: which speech is a side's own, and which comes over from the other."""

from collections.abc import Sequence

import numpy as np

from stages.recognisers.slicing import Samples, Span

_CROSSTALK_DB = 15.0  # so far under the other side, speech is an echo of it or a neighbouring wire's


def without_crosstalk(speech: Sequence[Span], own: Samples, other: Samples) -> list[Span]:
    """Return the speech of a side without what the other one says far louder at the same time."""
    return [
        (start, end)
        for start, end in speech
        if _decibels(other[start:end]) - _decibels(own[start:end]) < _CROSSTALK_DB
    ]


def united(sides: Sequence[Sequence[Span]]) -> list[Span]:
    """Return where anybody speaks, on any side, in order and joined where they overlap."""
    joined: list[Span] = []
    for start, end in sorted(span for speech in sides for span in speech):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _decibels(samples: Samples) -> float:
    power = float(np.mean(np.square(samples, dtype=np.float64))) if len(samples) else 0.0
    return float(10 * np.log10(power + 1e-3))

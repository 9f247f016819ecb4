"""The two sides of a call."""

import numpy as np

from stages.media.wave64 import RATE
from stages.recognisers.two_sides import united, without_crosstalk


def test_what_comes_over_from_the_other_side_is_not_ones_own() -> None:
    """Fifteen decibels under the other's voice; what is said at once by both is both's."""
    time = np.arange(4 * RATE) / RATE
    voice = (8000 * np.sin(2 * np.pi * 300 * time)).astype(np.int16)
    own, other = np.zeros_like(voice), np.zeros_like(voice)
    own[:RATE], own[2 * RATE : 3 * RATE] = voice[:RATE], voice[:RATE] // 20  # ours, then their echo
    other[2 * RATE :] = voice[2 * RATE :]
    own[3 * RATE :] = voice[3 * RATE :] // 2  # both
    speech = [(0, RATE), (2 * RATE, 3 * RATE), (3 * RATE, 4 * RATE)]
    assert without_crosstalk(speech, own, other) == [speech[0], speech[2]]
    assert without_crosstalk(speech[1:], other, own) == speech[1:]


def test_speech_of_both_is_joined_where_it_overlaps() -> None:
    """A pause is one where nobody speaks."""
    assert united([[(0, 5), (10, 12)], [(4, 7), (20, 22)]]) == [(0, 7), (10, 12), (20, 22)]
    assert united([[], []]) == []

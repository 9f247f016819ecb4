"""What the model hears at once: all speech, in windows that it can hear."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stages.media.wave64 import RATE
from stages.recognisers.slicing import Span
from stages.recognisers.windows import LONGEST, windows_of

MINUTES = np.zeros(6 * 60 * RATE, np.int16)


def _in_order(pairs: list[tuple[int, int]]) -> list[Span]:
    at, spans = 0, []
    for gap, long in pairs:
        start = at + gap * RATE // 4 + 1
        spans.append((start, start + long * RATE // 4))
        at = spans[-1][1]
    return [span for span in spans if span[1] <= len(MINUTES)]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 160)), max_size=12).map(_in_order))
def test_every_sample_of_speech_is_in_one_window(speech: list[Span]) -> None:
    """In order, and none longer than the model hears."""
    windows = windows_of(MINUTES, speech)
    assert all(window.length <= LONGEST for window in windows)
    spans = [span for window in windows for span in window.spans]
    assert spans == sorted(spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    heard = np.zeros(len(MINUTES), bool)
    for start, end in spans:
        heard[start:end] = True
    assert all(heard[start:end].all() for start, end in speech)


def test_a_window_ends_in_the_longest_pause_of_its_second_half() -> None:
    """No sentence is cut where there is a better place."""
    speech = [(RATE, 8 * RATE), (9 * RATE, 16 * RATE), (18 * RATE, 24 * RATE), (24 * RATE + 99, 40 * RATE)]
    first, second = windows_of(MINUTES, speech)
    assert first.spans[-1][1] <= 18 * RATE
    assert second.spans[0][0] >= 16 * RATE


def test_endless_speech_is_cut_where_it_is_quietest() -> None:
    """At the breath that nobody took for a pause."""
    loud = np.full(60 * RATE, 9000, np.int16)
    loud[20 * RATE : 20 * RATE + RATE // 4] = 0
    first, *_ = windows_of(loud, [(0, len(loud))])
    assert 20 * RATE <= first.spans[-1][1] <= 20 * RATE + RATE // 4 + RATE

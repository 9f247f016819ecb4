"""The outline of a recording: as plain arithmetic over all of its samples would have it, and always small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.media.peaks import MOST_PEAKS, Peaks


def outline(samples: int, blocks: list[int], sides: int) -> tuple[np.ndarray, np.ndarray]:
    """Return noise of so many samples, and the pairs that were made of it in blocks of these lengths."""
    sound = np.random.default_rng(7).integers(-32_768, 32_768, (sides, samples), np.int16)
    peaks, place = Peaks(samples), 0
    for length in [*blocks, samples]:
        peaks.add(sound[:, place : place + length])
        place += length
    return sound, np.frombuffer(peaks.as_bytes(), np.int8).reshape(-1, 2)


@given(st.integers(1, 30_000), st.lists(st.integers(0, 9_000), max_size=8), st.sampled_from((1, 2)))
def test_each_pair_is_how_far_its_part_reaches_from_silence(
    samples: int, blocks: list[int], sides: int
) -> None:
    """Down and up; however the samples are handed over, and of whichever side reaches further."""
    sound, pairs = outline(samples, blocks, sides)
    step = -(-samples // MOST_PEAKS)
    parts = [sound[:, at : at + step] for at in range(0, samples, step)]
    assert pairs.tolist() == [[min(part.min(), 0) >> 8, max(part.max(), 0) >> 8] for part in parts]


@pytest.mark.parametrize("hours", [1, 10, 100])
def test_however_long_it_is_the_outline_is_small(hours: int) -> None:
    """Some kilobytes, also of what nobody would draw."""
    samples = hours * 3600 * 16_000
    assert 1_000 < len(Peaks(samples).as_bytes()) <= 2 * MOST_PEAKS


def test_of_nothing_there_is_no_outline() -> None:
    """A recording without a sample has no part."""
    assert Peaks(0).as_bytes() == b""

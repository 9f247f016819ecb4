"""A call is told from a room by its sound: real speech on two sides, with noise and echo."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stages.media.sides import Likeness, Weighing
from stages.media.wave64 import RATE
from tests.stages.recognisers.speech import decoded

SAMPLE = Path(__file__).parents[2] / "samples" / "milestone.opus"

Sound = NDArray[np.float64]


@pytest.fixture(scope="module")
def turns() -> tuple[Sound, Sound]:
    """Speech, four seconds on one side and four on the other in turn, twice over."""
    whole = np.tile(decoded(SAMPLE).astype(np.float64), 2)
    left = np.arange(len(whole)) // (4 * RATE) % 2 == 0
    return whole * left, whole * ~left


def of(sound: Sound, decibels: float, milliseconds: int = 0) -> Sound:
    """Return a sound so much louder and later."""
    later: Sound = np.roll(sound, milliseconds * RATE // 1000) * 10 ** (decibels / 20)
    return later


def likeness(left: Sound, right: Sound, noise: float = -60.0) -> Likeness:
    """Weigh two sides, each with noise of its own at so many dB under full scale."""
    chance, weighing = np.random.default_rng(1), Weighing()
    noises = chance.normal(size=(2, len(left))) * 32_768 * 10 ** (noise / 20)
    sides = np.clip(np.vstack([left, right]) + noises, -32_768, 32_767).astype(np.int16)
    for start in range(0, len(left), RATE):
        weighing.add(sides[:, start : start + RATE])
    return weighing.likeness


@pytest.mark.parametrize("echo", [-40, -30, -22])
@pytest.mark.parametrize("noise", [-75, -60, -55])
def test_a_call_is_known_through_noise_and_echo(
    noise: float, echo: float, turns: tuple[Sound, Sound]
) -> None:
    """Each side hears itself, a little of the other one a tenth of a second later, and its line."""
    left, right = turns
    assert likeness(left + of(right, echo, 100), right + of(left, echo, 100), noise) is Likeness.APART


def test_a_call_is_known_where_one_side_is_quieter_or_speaks_little(turns: tuple[Sound, Sound]) -> None:
    """Each side is held against its own loudest."""
    left, right = turns
    assert likeness(left, of(right, -10)) is Likeness.APART
    short = right * (np.arange(len(right)) < 7 * RATE)
    assert likeness(left, short) is Likeness.APART


@pytest.mark.parametrize(("quieter", "later"), [(-3, 0), (-3, 7), (-10, 3), (0, 1)])
def test_a_room_is_no_call(quieter: float, later: int, turns: tuple[Sound, Sound]) -> None:
    """Two microphones hear everybody, one of them a little later or less."""
    everybody = turns[0] + turns[1]
    assert likeness(everybody, of(everybody, quieter, later)) in {Likeness.MIXED, Likeness.SAME}


def test_microphones_that_hear_the_neighbour_are_no_call(turns: tuple[Sound, Sound]) -> None:
    """Recognised apart, what is heard on both would be there twice."""
    left, right = turns
    assert likeness(left + of(right, -10, 5), right + of(left, -10, 5)) is Likeness.MIXED


def test_sound_on_one_side_and_sound_mirrored(turns: tuple[Sound, Sound]) -> None:
    """Crosstalk of a cable is no side; a mirror image is found through noise; silence twice is one sound."""
    everybody = turns[0] + turns[1]
    assert likeness(everybody, of(everybody, -50), noise=-90) is Likeness.ONE_SIDED
    assert likeness(of(everybody, -50), everybody, noise=-90) is Likeness.ONE_SIDED
    assert likeness(everybody, -everybody) is Likeness.MIRRORED
    assert likeness(everybody * 0, everybody * 0, noise=-90) is Likeness.SAME
    assert Weighing().likeness is Likeness.SAME

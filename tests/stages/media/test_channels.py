"""One sound, or the two sides of a call: what comes out is never silence, never one sound twice."""

from pathlib import Path

import numpy as np
import pytest

from stages.media.copy_writer import CopyWriter
from stages.media.messages import Channels
from stages.media.sides import mix_whole
from stages.media.wave64 import RATE, read_sides
from tests.stages.media.studio import tone
from tests.stages.media.test_decode import decoded, hertz, is_silent, loudness

# The sides of the copy for mix, split and auto, and what the recording's sides are to each other.
KINDS = {
    "call.wav": ((1, 2, 2), "apart"),
    "one_microphone_each.wav": ((1, 2, 1), "mixed"),
    "mono_as_stereo.wav": ((1, 1, 1), "same"),
    "antiphase.wav": ((1, 1, 1), "mirrored"),
    "right_only.wav": ((1, 2, 1), "one_sided"),
    "s16.wav": ((1, 1, 1), None),
}


@pytest.mark.parametrize("channels", Channels)
@pytest.mark.parametrize("name", KINDS)
def test_s_r8_the_sides_of_a_call_are_kept_apart(
    name: str, channels: Channels, shelf: Path, tmp_path: Path
) -> None:
    """Both sides where they were asked for, or where they are a call; in every case a mix that is heard."""
    finished, samples = decoded(shelf / name, tmp_path, channels=channels)
    sides, likeness = KINDS[name]
    assert finished.sides == sides[list(Channels).index(channels)]
    assert finished.likeness == likeness
    assert samples.shape[1:] == ((2,) if finished.sides == 2 else ())
    assert [entry.name for entry in tmp_path.iterdir()] == ["audio.w64"]
    heard, total = read_sides(tmp_path / "audio.w64", 0, 10**9)
    assert total == len(samples)
    assert loudness(mix_whole(heard)) > 1500


def test_each_side_of_a_call_is_its_own(shelf: Path, tmp_path: Path) -> None:
    """Each side's pitch is on its side alone, at its own time, and both are in the mix."""
    _, samples = decoded(shelf / "call.wav", tmp_path)
    turn = 2 * RATE
    assert hertz(samples[:turn, 0]) == pytest.approx(300, abs=1)
    assert is_silent(samples[:turn, 1])
    assert hertz(samples[turn : 2 * turn, 1]) == pytest.approx(500, abs=1)
    assert is_silent(samples[turn : 2 * turn, 0])
    sides, total = read_sides(tmp_path / "audio.w64", 0, 2 * turn)
    mixed = mix_whole(sides)
    assert total == len(samples)
    assert [hertz(mixed[:turn]), hertz(mixed[turn:])] == pytest.approx([300, 500], abs=1)


def test_a_late_call_is_late_on_both_sides(shelf: Path, tmp_path: Path) -> None:
    """Silence in front of the sound is in front of both."""
    finished, samples = decoded(shelf / "call_at_5s.mka", tmp_path)
    assert finished.sides == 2
    assert is_silent(samples[: 5 * RATE])
    assert hertz(samples[5 * RATE : 7 * RATE, 0]) == pytest.approx(300, abs=1)


def test_sides_that_stay_together_are_not_kept_for_long(tmp_path: Path) -> None:
    """After two minutes of one sound on both sides nobody waits for a call, unless both were asked for."""
    second = np.repeat(tone(1, RATE).T, 2, axis=0)
    for channels, kept in ((Channels.AUTO, 119), (Channels.SPLIT, 180)):
        with CopyWriter(tmp_path / "audio.w64", channels) as writer:
            for number in range(180):
                writer.write(second)
                assert (tmp_path / "audio.w64.sides.part").exists() == (number < kept)
            assert writer.finish() == 1
        assert [entry.name for entry in tmp_path.iterdir()] == ["audio.w64"]


def test_a_mix_is_exact_and_does_not_overflow() -> None:
    """Half of the sum, also at full scale; where two sides cancel out the louder one."""
    loud = np.full((2, RATE), 32_767, np.int16)
    assert mix_whole(loud).tolist() == loud[0].tolist()
    chance = np.random.default_rng(3).integers(-32_768, 32_768, (2, RATE * 2 + 7)).astype(np.int16)
    assert np.array_equal(mix_whole(chance), (chance.astype(int).sum(axis=0) // 2))
    mirrored = np.vstack([tone(1.5, RATE).T, -tone(1.5, RATE).T])
    assert loudness(mix_whole(mirrored)) == pytest.approx(loudness(mirrored[0]))
    assert mix_whole(np.empty((2, 0), np.int16)).shape == (0,)

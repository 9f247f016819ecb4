"""Sound of one kind after another comes out whole, and sound that is none costs only itself."""

import av
import numpy as np
import pytest
from av.audio.frame import AudioFrame

from stages.media.resample import Resampler
from stages.media.wave64 import RATE
from tests.stages.media.studio import tone


def frame(seconds: float, rate: int, layout: str = "mono") -> AudioFrame:
    """Return a tone as one frame."""
    sides = {"mono": 1, "stereo": 2}[layout]
    samples = np.repeat(tone(seconds, rate), sides, axis=1)
    made = AudioFrame.from_ndarray(np.ascontiguousarray(samples.reshape(1, -1)), "s16", layout)
    made.sample_rate = rate
    return made


def test_the_first_frame_settles_the_sides() -> None:
    """What follows is made one side or two as the first one was."""
    for first, other, sides in (("mono", "stereo", 1), ("stereo", "mono", 2)):
        resampler = Resampler()
        blocks = [*resampler.feed(frame(1.5, RATE, first)), *resampler.feed(frame(1.5, 8000, other))]
        blocks += resampler.drain()
        assert resampler.sides == sides
        assert {block.shape[0] for block in blocks} == {sides}
        assert all(block.shape[1] <= RATE for block in blocks)
        assert sum(block.shape[1] for block in blocks) == pytest.approx(3 * RATE, abs=20)


def test_what_was_ready_is_not_lost_to_a_frame_that_is_no_sound() -> None:
    """A frame that nothing can be made of raises, and the sound before it comes with the sound after it."""
    resampler = Resampler()
    assert resampler.feed(frame(0.5, RATE)) == []
    none = frame(0.1, RATE)
    none.sample_rate = -1
    with pytest.raises(av.FFmpegError):
        resampler.feed(none)
    blocks = [*resampler.feed(frame(0.25, RATE)), *resampler.drain()]
    assert sum(block.shape[1] for block in blocks) == 0.75 * RATE

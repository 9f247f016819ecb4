"""Makes recognition copies for tests."""

from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from stages.media.wave64 import RATE, Writer


def decoded(recording: Path) -> NDArray[np.int16]:
    """Return a healthy recording's samples at 16 kHz, mono."""
    with av.open(str(recording)) as container:
        resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
        frames = [*container.decode(audio=0), None]
        return np.concatenate([out.to_ndarray()[0] for frame in frames for out in resampler.resample(frame)])


def silence(seconds: float) -> NDArray[np.int16]:
    """Return so much of nothing."""
    return np.zeros(round(seconds * RATE), np.int16)


def noise(seconds: float, seed: int = 7) -> NDArray[np.int16]:
    """Return so much white noise."""
    return np.random.default_rng(seed).normal(0, 600, round(seconds * RATE)).astype(np.int16)


def written(copy: Path, samples: NDArray[np.int16]) -> Path:
    """Write a recognition copy and return its path."""
    with Writer(copy) as writer:
        writer.write(samples)
        writer.finish()
    return copy

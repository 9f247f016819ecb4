"""Decoded frames of any kind into 16 kHz mono: format, rate and channels may change from frame to frame."""

from collections.abc import Sequence

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray

from stages.media.wave64 import RATE

_BLOCK = RATE  # samples: channels are weighed against each other a second at a time
_CANCELLED = 0.01  # a mix 20 dB under its louder side: the sides are each other's mirror image


class Downmix:
    """Takes frames, gives blocks of mono samples (int16, shape (n,)); holds a second of sound at most."""

    def __init__(self) -> None:
        self._kind: tuple[str, str, int] | None = None
        self._resampler: AudioResampler | None = None
        self._waiting: list[NDArray[np.int16]] = []
        self._waiting_samples = 0

    def feed(self, frame: AudioFrame) -> list[NDArray[np.int16]]:
        """Take one frame; return what is ready. Raises av.FFmpegError for sound that cannot be resampled."""
        kind = (frame.format.name, frame.layout.name, frame.sample_rate)
        ready = [] if kind == self._kind else self.drain()
        if self._resampler is None:
            # Two sides are kept apart until they are weighed. More than two are mixed down to two first.
            layout = "mono" if frame.layout.nb_channels == 1 else "stereo"
            self._resampler = AudioResampler(format="s16", layout=layout, rate=RATE)
            self._kind = kind
        frame.pts = None  # where a piece belongs was settled before: the resampler must not judge again
        try:
            self._keep(self._resampler.resample(frame))
        except av.FFmpegError:
            self._resampler, self._kind = None, None  # half made, it would fail every frame after this one
            raise
        if self._waiting_samples >= _BLOCK:
            ready += self._mixed()
        return ready

    def drain(self) -> list[NDArray[np.int16]]:
        """Return all that is left; the next frame starts anew."""
        if self._resampler is not None:
            self._keep(self._resampler.resample(None))
        self._resampler, self._kind = None, None
        return self._mixed()

    def _keep(self, frames: Sequence[AudioFrame | None]) -> None:
        for frame in frames:
            if frame is None:  # from a resampler that had nothing to change, when it is asked for the rest
                continue
            sides = frame.to_ndarray().reshape(frame.samples, frame.layout.nb_channels)
            self._waiting.append(sides.astype(np.int16, copy=False))
            self._waiting_samples += frame.samples

    def _mixed(self) -> list[NDArray[np.int16]]:
        waiting, self._waiting, self._waiting_samples = self._waiting, [], 0
        return [mix(np.concatenate(waiting))] if waiting else []


def mix(sides: NDArray[np.int16]) -> NDArray[np.int16]:
    """Mix samples of shape (n, 1) or (n, 2) into (n,); where the sides cancel out, take the louder one."""
    if sides.shape[1] == 1:
        return sides[:, 0]
    wide = sides.astype(np.int32)
    mono = (wide[:, 0] + wide[:, 1]) >> 1
    loudness = np.square(sides, dtype=np.float64).sum(axis=0)
    if np.square(mono, dtype=np.float64).sum() < _CANCELLED * loudness.max():
        return sides[:, int(loudness.argmax())]
    return mono.astype(np.int16)

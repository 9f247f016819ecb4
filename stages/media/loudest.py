"""Which of several audio tracks is meant when nobody said: the first in which something is heard.

A film's first track is its main one, and a screen recorder's first is the mix of the others, so the first is
taken if it can be. But it may also be the microphone that was off. A glance at the beginning does not tell:
whoever was silent for an hour may speak then. So all are heard until the first one is, or to the end.
"""

from collections.abc import Sequence

import numpy as np
from attrs import define
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer

from stages.media.packets import attend_to, decode_packet, read_packets
from stages.media.track import Numbered

_MOST_TRACKS = 16  # a file with more of them is a test of our patience
_AUDIBLE = 10**-5.0  # of full power: 50 dB under full scale is still quiet speech
_ENOUGH_SECONDS = 10.0  # heard in the first track: it is no silent one
_WEAKER = 10**-3.0  # in power: 30 dB under the loudest track is the noise of an input that was not used
_STEP_SECONDS = 0.5


@define
class _Loudness:
    """How loud a track is: its loudest half second, and how many seconds are audible."""

    peak: float = 0.0
    audible_seconds: float = 0.0
    position: float = 0.0
    _power: float = 0.0
    _seconds: float = 0.0

    def add(self, frame: AudioFrame) -> None:
        seconds = frame.samples / frame.sample_rate
        self._power += _power_of(frame) * seconds
        self._seconds += seconds
        self.position += seconds
        if self._seconds >= _STEP_SECONDS:
            self.end_step()

    def end_step(self) -> None:
        """Judge what came since the last step."""
        if self._seconds:
            power = self._power / self._seconds
            self.peak = max(self.peak, power)
            self.audible_seconds += self._seconds if power > _AUDIBLE else 0.0
        self._power = self._seconds = 0.0


def first_with_sound(container: InputContainer, tracks: Sequence[Numbered], longest_seconds: float) -> int:
    """Return the number of the first track in which something is heard, of all those that were given.

    No track is heard for more than `longest_seconds`; the container has been read to where it was clear.
    """
    weighed = {track.stream.index: (track, _Loudness()) for track in tracks[:_MOST_TRACKS]}
    streams: list[AudioStream] = [track.stream for track, _ in weighed.values()]
    attend_to(container, streams)
    _, first = next(iter(weighed.values()))
    for packet in read_packets(container, streams, lambda _words: None):
        if packet is None or packet.stream_index not in weighed:
            continue
        track, loudness = weighed[packet.stream_index]
        for frame in decode_packet(packet, track.stream, lambda _words: None):
            loudness.add(frame)
        if first.audible_seconds >= _ENOUGH_SECONDS or loudness.position > longest_seconds:
            break
    if first.audible_seconds >= _ENOUGH_SECONDS:
        return tracks[0].number
    return _chosen(list(weighed.values()))


def _chosen(weighed: Sequence[tuple[Numbered, _Loudness]]) -> int:
    for _, loudness in weighed:
        loudness.end_step()
    loudest = max(loudness.peak for _, loudness in weighed)
    return next(track.number for track, loudness in weighed if loudness.peak >= loudest * _WEAKER)


def _power_of(frame: AudioFrame) -> float:
    """Return the mean power of all its channels, full scale being one."""
    samples = frame.to_ndarray()
    wide = samples.astype(np.float64)
    match samples.dtype.kind:
        case "u":
            wide = wide / 128 - 1
        case "i":
            wide /= 2.0 ** (8 * samples.dtype.itemsize - 1)
        case _:
            pass  # floating samples are what they are
    power = float(np.square(wide).mean())
    return power if np.isfinite(power) else 0.0

"""Makes recordings, good and bad, with the same libraries that read them."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, Self

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

Samples = NDArray[np.int16]

PLAYLIST = (
    "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:9.0,\n{}\n#EXT-X-ENDLIST\n"  # HLS
)


def tone(seconds: float, rate: int, hertz: float = 300.0) -> Samples:
    """Return a sine at a third of full scale, shape (n, 1)."""
    at = np.arange(round(seconds * rate)) / rate
    return (np.sin(2 * np.pi * hertz * at) * 11_000).astype(np.int16)[:, np.newaxis]


def silence(seconds: float, rate: int) -> Samples:
    """Return silence, shape (n, 1)."""
    return np.zeros((round(seconds * rate), 1), np.int16)


_PIXELS = {True: "rgb24", False: "yuv420p"}  # of a cover, of a film


class OneWay:
    """A file that can only be written on, as a pipe or a browser's recorder is."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write


class Tape:
    """One recording being made; sound may be put anywhere on its line."""

    def __init__(self, target: Path | OneWay, container: str, **options: str) -> None:
        self._out: OutputContainer = av.open(
            str(target) if isinstance(target, Path) else target, "w", format=container, options=options
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._out.close()

    def add_audio(self, codec: str, rate: int, sides: int = 1) -> AudioStream:
        """Add an audio track."""
        stream = self._out.add_stream(codec, rate=rate, layout="mono" if sides == 1 else "stereo")
        assert isinstance(stream, AudioStream)
        stream.time_base = Fraction(1, rate)
        return stream

    def add_picture(self, *, cover: bool = False) -> VideoStream:
        """Add a track of black pictures, or one that is a cover."""
        stream = self._out.add_stream("png" if cover else "mpeg4", rate=1)
        assert isinstance(stream, VideoStream)
        stream.width = stream.height = 64
        stream.pix_fmt = _PIXELS[cover]
        if cover:
            stream.disposition = av.stream.Disposition.attached_pic
        return stream

    def put(self, stream: AudioStream, samples: Samples, at: float = 0.0) -> None:
        """Put sound at a second of the line; may be called again for later pieces."""
        for frame in _frames(stream, samples, at):
            self._out.mux(stream.encode(frame))

    def show(self, stream: VideoStream, pictures: int) -> None:
        """Show black for that many seconds from the start."""
        for number in range(pictures):
            frame = VideoFrame(64, 64, _PIXELS[stream.codec.name == "png"])
            for plane in frame.planes:
                plane.update(bytes(plane.buffer_size))
            frame.pts, frame.time_base = number, Fraction(1, 1)
            self._out.mux(stream.encode(frame))
        self._out.mux(stream.encode(None))

    def end(self, stream: AudioStream) -> None:
        """Flush the encoder."""
        self._out.mux(stream.encode(None))


def _frames(stream: AudioStream, samples: Samples, at: float) -> Iterator[AudioFrame]:
    rate, context = stream.codec_context.rate, stream.codec_context
    layout, step = context.layout.name, context.frame_size or 1024
    resampler = av.AudioResampler(format=context.format, layout=layout, rate=rate, frame_size=step)
    position = round(at * rate)
    blocks: list[Samples | None] = [samples[start : start + step] for start in range(0, len(samples), step)]
    for block in [*blocks, None]:
        frame = None
        if block is not None:
            frame = AudioFrame.from_ndarray(np.ascontiguousarray(block.reshape(1, -1)), "s16", layout)
            frame.sample_rate = rate
        pieces: Sequence[AudioFrame | None] = resampler.resample(frame)
        for ready in pieces:
            if ready is None:  # when there was nothing to change and it is flushed
                continue
            ready.pts, ready.time_base = position, Fraction(1, rate)
            position += ready.samples
            yield ready


def record(
    target: Path | OneWay, container: str, codec: str, samples: Samples, rate: int, **options: str
) -> None:
    """Make a recording with one audio track."""
    with Tape(target, container, **options) as tape:
        stream = tape.add_audio(codec, rate, samples.shape[1])
        tape.put(stream, samples)
        tape.end(stream)

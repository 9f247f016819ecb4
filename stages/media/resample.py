"""Decoded frames of any kind into 16 kHz, one side or two: format, rate and channels may change midway.

FFmpeg's filters do it a second at a time: a frame handed over costs Python next to nothing.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
from attrs import define
from av.audio.frame import AudioFrame
from av.filter import Graph
from av.filter.context import FilterContext
from numpy.typing import NDArray

from stages.media.wave64 import RATE

Block = NDArray[np.int16]
"""Samples of shape (sides, n), 16 kHz, at most a second of them."""

_NAMELESS_LAYOUT = re.compile(r"([3-9]|\d\d+) channels")


@define
class _Filters:
    """The filters for frames of one kind; `held` is what was pushed since the last pull, in their samples."""

    kind: tuple[str, str, int]
    graph: Graph  # its filters do not keep it alive
    source: FilterContext
    sink: FilterContext
    held: int = 0


class Resampler:
    """Takes frames, gives blocks; holds two seconds of sound at most.

    The first frame settles one side or two. Two are kept apart until they are weighed, more are mixed to two.
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.sides = 0  # nothing came yet
        self._filters: _Filters | None = None
        self._ready: list[Block] = []

    def feed(self, frame: AudioFrame) -> list[Block]:
        """Take one frame; return what is ready.

        Raises av.FFmpegError for sound that cannot be resampled; what was ready before it is not lost.
        """
        kind = (frame.format.name, frame.layout.name, frame.sample_rate)
        if self._filters is not None and self._filters.kind != kind:
            self._end_filters()
        if not self.sides:
            self.sides = min(frame.layout.nb_channels, 2)
        frame.pts = None  # where a piece belongs was settled before: the filters must not judge again
        try:
            if self._filters is None:
                self._filters = _filters_for(kind, self.sides)
            self._filters.source.push(frame)
        except av.FFmpegError:
            self._filters = None  # half made, they would fail every frame after this one
            raise
        self._filters.held += frame.samples
        if self._filters.held >= frame.sample_rate:
            self._pull(self._filters)
        return self._taken()

    def drain(self) -> list[Block]:
        """Return all that is left; the next frame starts anew."""
        self._end_filters()
        return self._taken()

    def _end_filters(self) -> None:
        filters, self._filters = self._filters, None
        if filters is not None:
            filters.source.push(None)
            self._pull(filters)

    def _pull(self, filters: _Filters) -> None:
        filters.held = 0
        self._ready += [frame.to_ndarray().astype(np.int16, copy=False) for frame in _all_ready(filters.sink)]

    def _taken(self) -> list[Block]:
        taken, self._ready = self._ready, []
        return taken


def _all_ready(sink: FilterContext) -> Iterator[AudioFrame]:
    while True:
        try:
            frame = sink.pull()
        except (av.BlockingIOError, av.EOFError):  # no more for now, or for good
            return
        assert isinstance(frame, AudioFrame)  # noqa: S101 - they are filters of sound
        yield frame


def _filters_for(kind: tuple[str, str, int], sides: int) -> _Filters:
    sample_format, layout, rate = kind
    graph = Graph()
    graph.threads = 1
    source = graph.add_abuffer(
        sample_rate=rate, format=sample_format, layout=layout, time_base=Fraction(1, rate)
    )
    chain = [source]
    if nameless := _NAMELESS_LAYOUT.fullmatch(layout):
        chain.append(graph.add("pan", _every_other(int(nameless[1]))))
    target = "mono" if sides == 1 else "stereo"
    chain += [
        graph.add("aformat", f"sample_fmts=s16p:sample_rates={RATE}:channel_layouts={target}"),
        graph.add("asetnsamples", f"n={RATE}:p=0"),
        graph.add("abuffersink"),
    ]
    for one, next_one in pairwise(chain):
        one.link_to(next_one)
    graph.configure()
    return _Filters(kind, graph, source, chain[-1])


def _every_other(channels: int) -> str:
    """Mix channels nobody named: the odd ones are one side, the even ones the other."""
    left, right = ("+".join(f"c{at}" for at in range(first, channels, 2)) for first in (0, 1))
    return f"stereo|c0<{left}|c1<{right}"

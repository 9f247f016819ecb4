"""Decoding one recording into its recognition copy: streaming, in constant memory, packet by packet.

A damaged packet costs itself and no more. Nothing the header says is trusted: what was decoded is counted.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import numpy as np
from attrs import define
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.stream import Discard
from numpy.typing import NDArray

from stages.media.downmix import Downmix
from stages.media.messages import Caution, Finished, Request
from stages.media.source import MediaRefused, SourceFile, open_media
from stages.media.timeline import Timeline
from stages.media.track import Track, choose_track
from stages.media.wave64 import RATE, Writer
from storage.record import StopCode

_TELL_EVERY = 0.5  # seconds between two signs of life
_RATES = range(1000, 3_000_001)  # samples a second: others are damage, and resampling them has no bound
_MOST_BAD_READS = 100  # in a row: a demuxer that is past this is not getting on
_MOST_BAD_UNHEARD = 10_000  # bad packets before the first sound
_DECLARED_SLACK = 1.0  # seconds: lengths are rounded, and codecs pad
_CUT_SHARE = 0.95
_BAD_SHARE, _BAD_NUMBER = 0.01, 20  # from here on a person should know


@define
class _Tally:
    """What one decoding has met so far; `position` in samples of the copy, silence included."""

    told: Callable[[float], None]
    position: float = 0.0
    heard: int = 0
    good: int = 0
    bad: int = 0
    last_words: str = ""
    _next_word: float = 0.0

    def touch(self) -> None:
        now = time.monotonic()
        if now >= self._next_word:
            self._next_word = now + _TELL_EVERY
            self.told(self.position / RATE)

    def note_bad(self, words: str) -> None:
        self.bad += 1
        self.last_words = words
        if not self.heard and self.bad >= _MOST_BAD_UNHEARD:
            raise self.unheard()

    def unheard(self) -> MediaRefused:
        words = f"{self.bad} damaged packets and no sound: {self.last_words}"
        return MediaRefused(StopCode.NOT_MEDIA, words)


def decode(request: Request, told: Callable[[float], None]) -> Finished:
    """Decode as asked, calling `told` with the seconds decoded at most twice a second.

    Raises MediaRefused when the recording is at fault, OSError when reading or writing is,
    MemoryError when our own limit is.
    """
    tally = _Tally(told=told)
    with SourceFile(Path(request.source), tally.touch) as source:
        opened = open_media(source)
        with opened.container as container:
            track = choose_track(opened, request.track)
            for stream in container.streams:
                stream.discard = Discard.default if stream.index == track.stream.index else Discard.all
            with Writer(Path(request.target)) as writer:
                _copy(container, track, writer, tally, request.longest_seconds)
                source.raise_own_error()
                _judge(tally)
                writer.finish()
                return _finished(track, writer.samples / RATE, tally)


def _copy(
    container: InputContainer, track: Track, writer: Writer, tally: _Tally, longest_seconds: float
) -> None:
    declared = track.declared_seconds
    end = longest_seconds if declared is None else min(declared + _DECLARED_SLACK, longest_seconds)
    timeline = Timeline(zero=track.zero, end=end)
    downmix = Downmix()
    for frame in _frames(container, track.stream, tally):
        try:
            if timeline.silence_before(frame.time, tally.position):
                _write(writer, downmix.drain())
                writer.write_silence(round(timeline.silence_before(frame.time, writer.samples)))
                tally.position = writer.samples
            _write(writer, downmix.feed(frame))
        except MemoryError:
            raise
        except av.FFmpegError as error:
            tally.note_bad(_words(error))
            continue
        tally.heard += frame.samples
        tally.position += frame.samples * RATE / frame.sample_rate
        if tally.position > longest_seconds * RATE:
            words = f"more than {longest_seconds / 3600:g} hours of sound, which is the limit set"
            raise MediaRefused(StopCode.TOO_LONG, words)
        tally.touch()
    _write(writer, downmix.drain())


def _write(writer: Writer, blocks: list[NDArray[np.int16]]) -> None:
    for block in blocks:
        writer.write(block)


def _frames(container: InputContainer, stream: AudioStream, tally: _Tally) -> Iterator[AudioFrame]:
    for packet in _packets(container, stream, tally):
        try:
            frames = stream.decode(packet)
        except MemoryError:
            raise
        except av.FFmpegError as error:
            tally.note_bad(_words(error))
            continue
        tally.good += 1
        for frame in frames:
            if frame.sample_rate not in _RATES:
                tally.note_bad(f"{frame.sample_rate} samples a second are no sound")
            elif frame.samples > 0:
                yield frame


def _packets(
    container: InputContainer, stream: AudioStream, tally: _Tally
) -> Iterator["Packet[AudioStream] | None"]:
    """Yield the packets of the track, and at last what makes the decoder give all it holds."""
    bad_in_a_row = 0
    while bad_in_a_row < _MOST_BAD_READS:
        try:
            for packet in container.demux(stream):
                bad_in_a_row = 0
                yield packet
        except MemoryError:
            raise
        except av.FFmpegError as error:
            # An error ends PyAV's iteration, not the file: the next one goes on behind the damage.
            bad_in_a_row += 1
            tally.note_bad(_words(error))
        except IndexError:
            # PyAV trips over a track that began after the file was opened, when it has flushed ours.
            return
        else:
            return
    yield None


def _words(error: av.FFmpegError) -> str:
    return error.strerror or type(error).__name__


def _judge(tally: _Tally) -> None:
    if tally.heard:
        return
    if tally.bad:
        raise tally.unheard()
    raise MediaRefused(StopCode.NO_AUDIO, "the audio track is empty")


def _finished(track: Track, decoded: float, tally: _Tally) -> Finished:
    context = track.stream.codec_context
    return Finished(
        declared_seconds=track.declared_seconds,
        decoded_seconds=decoded,
        bad_packets=tally.bad,
        track=track.number,
        channels=context.channels,
        codec=context.codec.canonical_name,
        cautions=tuple(_cautions(track, decoded, tally)),
    )


def _cautions(track: Track, decoded: float, tally: _Tally) -> Iterator[Caution]:
    declared = track.declared_seconds
    told = declared if declared is not None and track.declared_for_track else 0.0
    if decoded < min(_CUT_SHARE * told, told - _DECLARED_SLACK):
        sentence = f"The file seems cut: it holds {decoded:.0f} s of the {told:.0f} s it declares."
        yield Caution(code="cut_short", sentence=sentence)
    if tally.bad >= _BAD_NUMBER or tally.bad > _BAD_SHARE * (tally.good + tally.bad):
        yield Caution(code="bad_packets", sentence=f"{tally.bad} damaged pieces of the file were left out.")

"""Decoding one recording into its recognition copy: streaming, in constant memory, packet by packet.

A damaged packet costs itself and no more. Nothing the header says is trusted: what was decoded is counted.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import av
from attrs import define
from av.container import InputContainer

from stages.media.copy_writer import CopyWriter
from stages.media.loudest import first_with_sound
from stages.media.messages import Caution, Finished, Request
from stages.media.packets import attend_to, decode_packet, read_packets, words_of
from stages.media.resample import Resampler
from stages.media.source import MediaRefused, Opened, SourceFile, open_media
from stages.media.timeline import Timeline
from stages.media.track import Track, choose_track, decodable_tracks
from stages.media.wave64 import RATE
from storage.record import StopCode

_TELL_EVERY = 0.5  # seconds between two signs of life
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
    packets: int = 0
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
        opened, number = _opened_for(request, source)
        with opened.container as container:
            track = choose_track(opened, number)
            attend_to(container, [track.stream])
            with CopyWriter(Path(request.target), request.channels) as writer:
                _copy(container, track, writer, tally, request.longest_seconds)
                source.raise_own_error()
                _judge(tally, writer.samples)
                return _finished(track, writer, tally)


def _opened_for(request: Request, source: SourceFile) -> tuple[Opened, int | None]:
    """Open the recording and say which track to take; of several, one must be heard to be chosen."""
    opened = open_media(source)
    tracks = decodable_tracks(opened)
    if request.track is not None or len(tracks) <= 1:
        return opened, request.track
    with opened.container:
        number = first_with_sound(opened.container, tracks, request.longest_seconds)
        source.raise_own_error()
    return open_media(source), number


def _copy(
    container: InputContainer, track: Track, writer: CopyWriter, tally: _Tally, longest_seconds: float
) -> None:
    declared = track.declared_seconds
    end = longest_seconds if declared is None else min(declared + _DECLARED_SLACK, longest_seconds)
    timeline = Timeline(zero=track.zero, end=end)
    resampler, stream = Resampler(), track.stream
    most = longest_seconds * RATE
    for packet in read_packets(container, [stream], tally.note_bad):
        tally.packets += 1
        for frame in decode_packet(packet, stream, tally.note_bad):
            try:
                if timeline.silence_before(frame.time, tally.position):
                    _write(writer, resampler)
                    writer.write_silence(round(timeline.silence_before(frame.time, writer.samples)))
                    tally.position = writer.samples
                blocks = resampler.feed(frame)
            except MemoryError:
                raise
            except av.FFmpegError as error:
                tally.note_bad(words_of(error))
                continue
            for block in blocks:
                writer.write(block)
            tally.heard += frame.samples
            tally.position += frame.samples * RATE / frame.sample_rate
            if tally.position > most:
                words = f"more than {longest_seconds / 3600:g} hours of sound, which is the limit set"
                raise MediaRefused(StopCode.TOO_LONG, words)
            if blocks:
                tally.touch()
    _write(writer, resampler)


def _write(writer: CopyWriter, resampler: Resampler) -> None:
    for block in resampler.drain():
        writer.write(block)


def _judge(tally: _Tally, samples: int) -> None:
    """Refuse a recording of which nothing came out; a single sample is too short to leave one in the copy."""
    if samples:
        return
    if tally.bad and not tally.heard:
        raise tally.unheard()
    raise MediaRefused(StopCode.NO_AUDIO, "the audio track is empty")


def _finished(track: Track, writer: CopyWriter, tally: _Tally) -> Finished:
    context = track.stream.codec_context
    sides, decoded = writer.finish(), writer.samples / RATE
    return Finished(
        declared_seconds=track.declared_seconds,
        decoded_seconds=decoded,
        bad_packets=tally.bad,
        track=track.number,
        channels=context.channels,
        sides=sides,
        likeness=writer.likeness,
        codec=context.codec.canonical_name,
        cautions=tuple(_cautions(track, decoded, tally)),
    )


def _cautions(track: Track, decoded: float, tally: _Tally) -> Iterator[Caution]:
    declared = track.declared_seconds
    told = declared if declared is not None and track.declared_for_track else 0.0
    if decoded < min(_CUT_SHARE * told, told - _DECLARED_SLACK):
        sentence = f"The file seems cut: it holds {decoded:.0f} s of the {told:.0f} s it declares."
        yield Caution(code="cut_short", sentence=sentence)
    if tally.bad >= _BAD_NUMBER or tally.bad > _BAD_SHARE * max(tally.packets, tally.bad):
        yield Caution(code="bad_packets", sentence=f"{tally.bad} damaged pieces of the file were left out.")

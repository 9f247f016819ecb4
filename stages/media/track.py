"""Which of a file's audio tracks is decoded, and what the file says of its length."""

from attrs import frozen
from av.audio.stream import AudioStream

from stages.media.source import MediaRefused, Opened
from storage.record import StopCode

# Their line starts at zero by definition. All others start where their first stamp says.
_LINE_STARTS_AT_ZERO = {"matroska", "mov"}
_LENGTHS_BY_TRACK = {"mov", "avi"}
_MICROSECONDS = 1_000_000


@frozen
class Numbered:
    """An audio track that can be decoded, and its number among all audio tracks, from 0."""

    number: int
    stream: AudioStream


@frozen(kw_only=True)
class Track:
    """The chosen track; seconds are on the file's own line, which starts at the stamp `zero`."""

    stream: AudioStream
    number: int  # among the audio tracks, from 0
    zero: float
    declared_seconds: float | None  # the file's own word; None when it says nothing
    declared_for_track: bool  # and that word is about this track, not about a picture beside it


def decodable_tracks(opened: Opened) -> list[Numbered]:
    """Return every audio track that can be decoded here."""
    streams = opened.container.streams.audio
    return [Numbered(number, stream) for number, stream in enumerate(streams) if _decodable(stream)]


def choose_track(opened: Opened, asked: int | None) -> Track:
    """Return the track asked for, or the first that can be decoded; raises MediaRefused (`no_audio`)."""
    streams = opened.container.streams.audio  # cover art is no audio stream, whatever the file is named
    if not streams:
        raise MediaRefused(StopCode.NO_AUDIO, "the file has no audio track")
    if asked is not None and asked >= len(streams):
        words = f"audio track {asked} was asked for, counted from 0, and the file has {len(streams)}"
        raise MediaRefused(StopCode.NO_AUDIO, words)
    chosen = next((track for track in decodable_tracks(opened) if asked in (None, track.number)), None)
    if chosen is None:
        raise MediaRefused(StopCode.NO_AUDIO, "the audio track is in a codec that cannot be decoded here")
    zero = _zero(opened)
    declared, own = _declared(opened, chosen.stream, zero)
    return Track(
        stream=chosen.stream,
        number=chosen.number,
        zero=zero,
        declared_seconds=declared,
        declared_for_track=own,
    )


def _decodable(stream: AudioStream) -> bool:
    # PyAV has None here for a codec it has no decoder for, though its types say otherwise.
    return getattr(stream, "codec_context", None) is not None


def _zero(opened: Opened) -> float:
    start = (opened.container.start_time or 0) / _MICROSECONDS
    # A late start inside the file's length is part of it. One past it is a piece cut out of a longer line.
    if _is_one_of(opened, _LINE_STARTS_AT_ZERO) and 0 <= start <= _whole_seconds(opened):
        return 0.0
    return start


def _declared(opened: Opened, stream: AudioStream, zero: float) -> tuple[float | None, bool]:
    if opened.estimated:
        return opened.header_seconds, True
    tagged = _seconds_of_clock(stream.metadata.get("DURATION", ""))
    if tagged:
        return tagged, True
    # Elsewhere FFmpeg gives a track the length of the whole, which a picture beside it may have made.
    own = len(opened.container.streams) == 1 or _is_one_of(opened, _LENGTHS_BY_TRACK)
    if stream.time_base is None or not stream.duration:
        return _whole_seconds(opened) or None, own
    start = 0.0 if stream.start_time is None else float(stream.start_time * stream.time_base) - zero
    seconds = max(start, 0.0) + float(stream.duration * stream.time_base)
    return (seconds if seconds > 0 else None), own


def _is_one_of(opened: Opened, formats: set[str]) -> bool:
    return not formats.isdisjoint(opened.container.format.name.split(","))


def _whole_seconds(opened: Opened) -> float:
    return max(opened.container.duration or 0, 0) / _MICROSECONDS


def _seconds_of_clock(text: str) -> float | None:
    """Return the seconds of Matroska's `01:02:03.000000000`, None for anything else."""
    parts = text.split(":")
    try:
        hours, minutes, seconds = (float(part) for part in parts)
    except ValueError:
        return None
    total = hours * 3600 + minutes * 60 + seconds
    return total if 0 < total < float("inf") else None

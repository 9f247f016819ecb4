"""Whether a recording plays everywhere as it is, and at the right second wherever one jumps in it.

A browser finds a second of an MP3 by arithmetic, so all of its pieces must be of one size; of an M4A it reads
where each piece lies. Everything else, and whatever has more in it than one sound, gets a copy of its own.
"""

from av.audio.stream import AudioStream
from av.container import InputContainer
from av.stream import Disposition

from stages.media.packets import attend_to, read_packets
from stages.media.source import MediaRefused, SourceFile, open_media

_SLACK_SECONDS = 0.3  # codecs pad; more than that, and a word would not be where it is said
_PADDING_BYTES = 1  # by which the pieces of an MP3 of one rate differ
_RATES = range(8000, 48_001)
_MOST_CHANNELS = 2
_NOT_MP4 = ("", "qt")  # QuickTime's own, which only some play


def plays_everywhere(source: SourceFile, decoded_seconds: float) -> str | None:
    """Return what kind of media the recording is, if browsers play it as it is; None if it needs a copy."""
    source.rewind()
    try:
        opened = open_media(source)
    except MediaRefused:
        return None
    with opened.container as container:
        stream = _only_sound(container)
        if stream is None:
            return None
        media = _media(container, stream)
        return media if media and _is_on_time(container, stream, media, decoded_seconds) else None


def _only_sound(container: InputContainer) -> AudioStream | None:
    sounds = container.streams.audio
    others = [each for each in container.streams if each not in sounds]
    if len(sounds) != 1 or not all(each.disposition & Disposition.attached_pic for each in others):
        return None
    sound = sounds[0]
    if getattr(sound, "codec_context", None) is None:
        return None
    fits = sound.codec_context.sample_rate in _RATES and sound.codec_context.channels <= _MOST_CHANNELS
    return sound if fits else None


def _media(container: InputContainer, stream: AudioStream) -> str | None:
    formats, codec = container.format.name.split(","), stream.codec_context.codec.canonical_name
    if "mp3" in formats and codec == "mp3":
        return "audio/mpeg"
    is_mp4 = "mov" in formats and container.metadata.get("major_brand", "").strip() not in _NOT_MP4
    if is_mp4 and codec == "aac" and stream.codec_context.profile == "LC":
        return "audio/mp4"
    return None


def _is_on_time(container: InputContainer, stream: AudioStream, media: str, decoded_seconds: float) -> bool:
    """Tell whether the pieces follow each other from the beginning to the end, in as many seconds."""
    bad: list[str] = []
    attend_to(container, [stream])
    end, sizes = 0.0, _Sizes()
    for packet in read_packets(container, [stream], bad.append):
        if packet is None or packet.pts is None or not packet.size:
            continue
        at = float(packet.pts * packet.time_base)
        if bad or abs(at - end) > _SLACK_SECONDS:
            return False
        end = at + float((packet.duration or 0) * packet.time_base)
        sizes.add(packet.size)
    even = media == "audio/mp4" or sizes.are_even
    return not bad and even and abs(end - decoded_seconds) < _SLACK_SECONDS


class _Sizes:
    """The sizes of pieces: whether they are all one, but for padding."""

    def __init__(self) -> None:
        self._least, self._most = 2**63, 0

    def add(self, size: int) -> None:
        self._least, self._most = min(self._least, size), max(self._most, size)

    @property
    def are_even(self) -> bool:
        return self._most - self._least <= _PADDING_BYTES

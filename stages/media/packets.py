"""Packets and frames one by one: what is damaged costs itself and no more, and is told."""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import av
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.stream import Discard

_RATES = range(1000, 3_000_001)  # samples a second: others are damage, and resampling them has no bound
_MOST_BAD_READS = 100  # in a row: a demuxer that is past this is not getting on

NoteBad = Callable[[str], None]
"""Called with FFmpeg's words for each piece that is damaged."""


def attend_to(container: InputContainer, streams: Sequence[AudioStream]) -> None:
    """Have the demuxer pass over every other stream."""
    wanted = {stream.index for stream in streams}
    for stream in container.streams:
        stream.discard = Discard.default if stream.index in wanted else Discard.all


def read_packets(
    container: InputContainer, streams: Sequence[AudioStream], note_bad: NoteBad
) -> Iterator["Packet[AudioStream] | None"]:
    """Yield the packets of the streams, and at last those that make each decoder give all it holds.

    None comes at the end of a file that is given up: then no decoder was made to.
    """
    bad_in_a_row = 0
    while bad_in_a_row < _MOST_BAD_READS:
        try:
            for packet in container.demux(*streams):
                bad_in_a_row = 0
                yield cast("Packet[AudioStream]", packet)  # PyAV's types know one stream only
        except MemoryError:
            raise
        except av.FFmpegError as error:
            # An error ends PyAV's iteration, not the file: the next one goes on behind the damage.
            bad_in_a_row += 1
            note_bad(words_of(error))
        except IndexError:
            # PyAV trips over a track that began after the file was opened, when it has flushed ours.
            return
        else:
            return
    yield None


def decode_packet(
    packet: "Packet[AudioStream] | None", stream: AudioStream, note_bad: NoteBad
) -> list[AudioFrame]:
    """Return the frames that a packet completes (None: all that are left); none where it is damaged."""
    try:
        frames = stream.decode(packet)
    except MemoryError:
        raise
    except av.FFmpegError as error:
        note_bad(words_of(error))
        return []
    return [frame for frame in frames if _is_sound(frame, note_bad)]


def words_of(error: av.FFmpegError) -> str:
    """Return FFmpeg's words for an error."""
    return error.strerror or type(error).__name__


def _is_sound(frame: AudioFrame, note_bad: NoteBad) -> bool:
    if frame.sample_rate not in _RATES:
        note_bad(f"{frame.sample_rate} samples a second are no sound")
        return False
    return frame.samples > 0

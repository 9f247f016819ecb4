"""The listening copy: plays everywhere, and each word is heard at its second."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from stages.media.listening_child import answer
from stages.media.listening_messages import ListeningRequest, Made, answer_from_json, request_to_json
from stages.media.messages import Failed, Progressed
from stages.media.peaks import MOST_PEAKS
from stages.media.wave64 import RATE, Writer
from tests.stages.media.lifelines import start_child
from tests.stages.media.studio import Tape, record, tone
from tests.stages.media.test_long import megabytes

ROOMY = 512 * 2**20
BEEP_AT = (3.0, 41.5, 70.25)


def beeps(seconds: float) -> np.ndarray:
    """Return silence with a tenth of a second of sound at known seconds, shape (n,)."""
    sound = np.zeros(round(seconds * RATE), np.int16)
    for at in BEEP_AT:
        begin = round(at * RATE)
        sound[begin : begin + RATE // 10] = tone(0.1, RATE, 1000)[:, 0]
    return sound


def a_copy(folder: Path, *sides: np.ndarray) -> Path:
    """Write a recognition copy."""
    path = folder / "audio.w64"
    with Writer(path, len(sides)) as writer:
        writer.write(np.stack(sides))
        writer.finish()
    return path


def started(request: ListeningRequest, memory: int = ROOMY, **limits: int) -> "subprocess.Popen[str]":
    """Start the child as the daemon does, and give it its request."""
    return start_child("stages.media.listening_child", request_to_json(request), memory, **limits)


def asked(folder: Path, audio: Path, source: Path | None = None) -> ListeningRequest:
    """Return a request."""
    target = str(folder / "listening.mp3")
    return ListeningRequest(source=None if source is None else str(source), audio=str(audio), target=target)


def made(request: ListeningRequest) -> Any:
    """Return the answer to a request, made in this process."""
    return answer(request, lambda _: None)


def made_by_a_child(request: ListeningRequest) -> Any:
    """Return the child's last answer."""
    child = started(request)
    said, words = child.communicate(timeout=60)
    assert said, words
    answers = [answer_from_json(json.loads(line)) for line in said.splitlines()]
    assert all(isinstance(each, Progressed) for each in answers[:-1])
    return answers[-1]


def heard(path: Path) -> np.ndarray:
    """Return what a player hears, at 16 kHz, shape (sides, n)."""
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray() for frame in container.decode(audio=0)]
    joined = np.concatenate(frames, axis=1)
    return np.asarray(joined, np.float64) if joined.dtype.kind == "f" else np.asarray(joined) / 32_768


def test_every_beep_is_at_its_second(tmp_path: Path) -> None:
    """Within a twentieth of a second, to the end; and the whole is as long as the recording."""
    told = made_by_a_child(asked(tmp_path, a_copy(tmp_path, beeps(80))))
    assert (told.media, told.is_source) == ("audio/mpeg", False)
    assert len(told.peaks) == 2 * MOST_PEAKS
    sound = np.abs(heard(tmp_path / "listening.mp3")[0])
    assert len(sound) / RATE == pytest.approx(80, abs=0.1)
    loud = np.flatnonzero(sound > 0.1)
    begins = loud[np.flatnonzero(np.diff(loud, prepend=-RATE) > RATE // 2)] / RATE
    assert begins == pytest.approx(BEEP_AT, abs=0.05)
    assert [entry.name for entry in sorted(tmp_path.iterdir())] == ["audio.w64", "listening.mp3"]


def test_all_pieces_of_it_are_of_one_size(tmp_path: Path) -> None:
    """So that a browser finds a second by arithmetic; and it is about a tenth of the samples."""
    made(asked(tmp_path, a_copy(tmp_path, beeps(80))))
    with av.open(str(tmp_path / "listening.mp3")) as container:
        assert container.format.name == "mp3"
        sizes = {packet.size for packet in container.demux() if packet.size}
    assert len(sizes) == 1
    assert (tmp_path / "listening.mp3").stat().st_size < 80 * RATE * 2 / 5


def test_the_sides_of_a_call_are_heard_on_their_own_ears(tmp_path: Path) -> None:
    """What is on one side alone is on that ear alone."""
    left, right = tone(2, RATE)[:, 0], np.zeros(2 * RATE, np.int16)
    made(asked(tmp_path, a_copy(tmp_path, left, right)))
    sound = heard(tmp_path / "listening.mp3")
    assert np.abs(sound[0]).max() > 0.2
    assert np.abs(sound[1]).max() < 0.02


@pytest.mark.parametrize(
    ("name", "container", "codec", "media"),
    [("a.mp3", "mp3", "libmp3lame", "audio/mpeg"), ("a.m4a", "ipod", "aac", "audio/mp4")],
)
def test_what_plays_already_is_its_own_copy(
    tmp_path: Path, name: str, container: str, codec: str, media: str
) -> None:
    """MP3 of one rate and M4A: nothing is written, and the peaks are there."""
    record(tmp_path / name, container, codec, tone(20, 44_100), 44_100)
    told = made(asked(tmp_path, a_copy(tmp_path, tone(20, RATE)[:, 0]), tmp_path / name))
    assert (told.media, told.is_source) == (media, True)
    assert len(told.peaks) == 2 * MOST_PEAKS
    assert not (tmp_path / "listening.mp3").exists()


def test_what_plays_not_everywhere_or_not_on_time_gets_a_copy(tmp_path: Path, shelf: Path) -> None:
    """Other codecs and containers, film, several tracks, an MP3 whose rate changes, a cut one, no media."""
    record(tmp_path / "a.flac", "flac", "flac", tone(20, 44_100), 44_100)
    record(tmp_path / "a.mov", "mov", "aac", tone(20, 44_100), 44_100)
    record(tmp_path / "a.aac", "adts", "aac", tone(20, 44_100), 44_100)
    record(tmp_path / "short.mp3", "mp3", "libmp3lame", tone(15, 44_100), 44_100)
    with av.open(str(tmp_path / "vbr.mp3"), "w", format="mp3") as out:
        stream = out.add_stream("libmp3lame", rate=44_100, layout="mono", options={"compression_level": "5"})
        stream.codec_context.qscale = True
        stream.codec_context.global_quality = 118 * 5
        sound = np.concatenate([tone(10, 44_100), np.zeros((441_000, 1), np.int16)]).T
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(sound), "s16p", "mono")
        frame.sample_rate = 44_100
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    others = [tmp_path / name for name in ("a.flac", "a.mov", "a.aac", "short.mp3", "vbr.mp3")]
    others += [
        shelf / name for name in ("two_tracks_first_silent.mp4", "concat_neighbour.wav", "no_moov.m4a")
    ]
    copy = a_copy(tmp_path, tone(20, RATE)[:, 0])
    for source in others:
        told = made(asked(tmp_path, copy, source))
        assert (told.media, told.is_source) == ("audio/mpeg", False), source.name
        (tmp_path / "listening.mp3").unlink()


def test_cover_art_keeps_nothing_from_being_its_own_copy(tmp_path: Path) -> None:
    """A picture beside the sound is no film."""
    with Tape(tmp_path / "a.mp3", "mp3") as tape:
        sound = tape.add_audio("libmp3lame", 44_100)
        picture = tape.add_picture(cover=True)
        tape.put(sound, tone(20, 44_100))
        tape.show(picture, 1)
        tape.end(sound)
    told = made(asked(tmp_path, a_copy(tmp_path, tone(20, RATE)[:, 0]), tmp_path / "a.mp3"))
    assert told.is_source


def test_a_copy_that_is_none_is_told(tmp_path: Path) -> None:
    """In a sentence, and nothing is left."""
    (tmp_path / "audio.w64").write_bytes(b"no copy")
    told = made(asked(tmp_path, tmp_path / "audio.w64"))
    assert told == Failed(reason="audio.w64 is no Wave64 file", errno=None)
    assert [entry.name for entry in tmp_path.iterdir()] == ["audio.w64"]


def test_a_disk_that_takes_no_more_is_told_as_that(tmp_path: Path) -> None:
    """With the system's own number, and nothing is left."""
    child = started(asked(tmp_path, a_copy(tmp_path, tone(120, RATE)[:, 0])), file=100_000)
    said, _ = child.communicate(timeout=60)
    assert not [line for line in said.splitlines() if isinstance(answer_from_json(json.loads(line)), Made)]


def test_bytes_go_over_the_wire() -> None:
    """The peaks are bytes of any value."""
    message = {
        "event": "made",
        "media": "a/b",
        "is_source": True,
        "peaks": base64.b64encode(b"\0\xff").decode(),
    }
    assert answer_from_json(message) == Made(media="a/b", is_source=True, peaks=b"\0\xff")


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_ten_hours_take_no_more_memory_than_one(tmp_path: Path) -> None:
    """Memory is flat in time: what is held after an hour is held after ten."""
    path = tmp_path / "audio.w64"
    minute = np.random.default_rng(3).normal(0, 3000, 60 * RATE).astype(np.int16)
    with Writer(path) as writer:
        for _ in range(600):
            writer.write(minute)
        writer.finish()
    child = started(asked(tmp_path, path), memory=256 * 2**20)
    assert child.stdout is not None
    held: list[tuple[float, float]] = []
    last: object = None
    for line in child.stdout:
        last = answer_from_json(json.loads(line))
        if isinstance(last, Progressed):
            held.append((last.decoded_seconds, megabytes(child.pid)))
    child.communicate(timeout=60)
    assert isinstance(last, Made)
    early = max(amount for seconds, amount in held if 600 < seconds < 3600)
    late = max(amount for seconds, amount in held if seconds > 32_400)
    assert late < early + 8, held

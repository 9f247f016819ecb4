"""The decoding child as it is really started: limits, the wire, and every way it may end."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stages.media.messages import (
    Answer,
    Channels,
    Failed,
    Finished,
    Progressed,
    Refused,
    Request,
    answer_from_json,
    answer_to_json,
    request_to_json,
)
from stages.media.wave64 import read_header
from storage.record import StopCode
from tests.stages.media.lifelines import start_child

MEGABYTE = 2**20
ROOMY = 512 * MEGABYTE


def start(request: dict[str, Any], memory: int = ROOMY, **limits: int) -> "subprocess.Popen[str]":
    """Start the child by its lifeline, as the daemon does, and give it its request."""
    return start_child("stages.media.child", request, memory, **limits)


def asked(source: Path, folder: Path, longest: float = 360_000.0) -> dict[str, Any]:
    """Return a request."""
    target = str(folder / "audio.w64")
    return request_to_json(
        Request(
            source=str(source), target=target, track=None, channels=Channels.AUTO, longest_seconds=longest
        )
    )


def answers(child: "subprocess.Popen[str]") -> list[Answer]:
    """Return all it said, each line of it a message; it ended well and said nothing beside."""
    said, beside = child.communicate(timeout=60)
    assert child.returncode == 0, beside
    assert beside == ""
    return [answer_from_json(json.loads(line)) for line in said.splitlines()]


def test_signs_of_life_and_then_one_answer(shelf: Path, tmp_path: Path) -> None:
    """The last word is the result, and the copy is there in full when it is said."""
    *signs, last = answers(start(asked(shelf / "chained.ogg", tmp_path)))
    assert signs
    assert all(isinstance(sign, Progressed) for sign in signs)
    assert isinstance(last, Finished)
    assert read_header(tmp_path / "audio.w64").seconds == last.decoded_seconds == pytest.approx(120)
    assert [entry.name for entry in tmp_path.iterdir()] == ["audio.w64"]


def test_a_hopeless_file_is_an_answer(shelf: Path, tmp_path: Path) -> None:
    """Refused with its code, in a child that ends well."""
    (last,) = answers(start(asked(shelf / "html.mp3", tmp_path)))[-1:]
    assert isinstance(last, Refused)
    assert last.code == StopCode.NOT_MEDIA


def test_damage_does_not_chatter(shelf: Path, tmp_path: Path) -> None:
    """FFmpeg's complaints about a damaged file reach neither the wire nor stderr."""
    last = answers(start(asked(shelf / "damaged.m4a", tmp_path)))[-1]
    assert isinstance(last, Finished)
    assert last.bad_packets > 5


def test_a_missing_source_is_a_failure_with_its_number(tmp_path: Path) -> None:
    """An error of the system is told with its number, and is no verdict."""
    last = answers(start(asked(tmp_path / "missing", tmp_path)))[-1]
    assert isinstance(last, Failed)
    assert last.errno == 2


def test_a_full_disk_is_a_failure_with_its_number(shelf: Path, tmp_path: Path) -> None:
    """A file over its limit, here, stands for any write that is refused: it is told, and nothing is left."""
    last = answers(start(asked(shelf / "chained.ogg", tmp_path), file=MEGABYTE))[-1]
    assert isinstance(last, Failed)
    assert last.errno == 27  # EFBIG
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An hour of telephone silence, most of it a hole in the file."""
    path = tmp_path_factory.mktemp("hour") / "hour.wav"
    with path.open("wb") as file:
        size = 3600 * 8000
        file.write(b"RIFF" + (size + 36).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little"))
        file.write(bytes.fromhex("07000100401f0000401f000001000800"))  # mu-law, mono, 8 kHz
        file.write(b"data" + size.to_bytes(4, "little"))
        file.truncate(size + 44)
    return path


def test_memory_does_not_grow_with_length(hour: Path, tmp_path: Path) -> None:
    """An hour is decoded within a quarter of what the shortest file is allowed by default."""
    last = answers(start(asked(hour, tmp_path), memory=256 * MEGABYTE))[-1]
    assert isinstance(last, Finished)
    assert last.decoded_seconds == 3600.0


def test_no_answer_without_memory(shelf: Path, tmp_path: Path) -> None:
    """Too little memory ends it without a verdict on the recording."""
    child = start(asked(shelf / "s16.wav", tmp_path), memory=160 * MEGABYTE)
    said, _ = child.communicate(timeout=60)
    assert child.returncode != 0
    assert "refused" not in said
    assert not (tmp_path / "audio.w64").exists()


def test_killed_in_the_middle_leaves_no_copy(hour: Path, tmp_path: Path) -> None:
    """Whenever it dies, nothing half-made has the name of a copy."""
    child = start(asked(hour, tmp_path))
    assert child.stdout is not None
    child.stdout.readline()
    child.kill()
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert not (tmp_path / "audio.w64").exists()


@pytest.mark.parametrize(
    "answer",
    [
        Progressed(decoded_seconds=1.5),
        Refused(code=StopCode.NO_AUDIO, reason="the file has no audio track"),
        Failed(reason="No space left on device", errno=28),
    ],
)
def test_an_answer_survives_the_wire(answer: Answer) -> None:
    """What is read is what was said."""
    assert answer_from_json(json.loads(json.dumps(answer_to_json(answer)))) == answer

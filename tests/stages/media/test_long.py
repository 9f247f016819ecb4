"""Long recordings: bounded by what they hold and not by what they say, in memory that does not grow."""

import json
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from stages.media.messages import Finished, Progressed, Refused, answer_from_json
from stages.media.wave64 import read_header
from storage.record import StopCode
from tests.stages.media.studio import Tape, silence, tone
from tests.stages.media.test_child import MEGABYTE, asked, start

HOUR = 3600.0
BEGINNING = 600.0  # seconds of sound after which nothing may grow
GROWTH = 8.0  # megabytes: what an allocator keeps for itself

pytestmark = pytest.mark.deep


def megabytes(pid: int) -> float:
    """Return what a process holds in memory now."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def watched(request: dict[str, Any]) -> tuple[Finished | Refused, list[float]]:
    """Have a file decoded; return the answer and the child's memory at each sign of life, from minutes on."""
    child = start(request, memory=256 * MEGABYTE)
    assert child.stdout is not None
    held: list[float] = []
    for line in child.stdout:
        answer = answer_from_json(json.loads(line))
        if not isinstance(answer, Progressed):
            child.communicate(timeout=60)
            assert isinstance(answer, Finished | Refused), answer
            return answer, held
        if answer.decoded_seconds > BEGINNING:
            held.append(megabytes(child.pid))
    raise AssertionError("the child ended without an answer")


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hours in a few megabytes: twenty minutes of silence, joined; the header tells of them alone."""
    folder = tmp_path_factory.mktemp("bomb")
    with Tape(folder / "part.ogg", "ogg") as tape:
        sound = tape.add_audio("libopus", 48_000)
        sound.codec_context.bit_rate = 6000
        for minute in range(20):
            tape.put(sound, silence(60, 48_000), at=minute * 60.0)
        tape.end(sound)
    (folder / "bomb.ogg").write_bytes((folder / "part.ogg").read_bytes() * 18)
    return folder / "bomb.ogg"


def test_s_r13_the_bomb_under_a_limit_above_its_length(bomb: Path, tmp_path: Path) -> None:
    """It is six hours of sound, and that is what comes out."""
    answer, held = watched(asked(bomb, tmp_path, 10 * HOUR))
    assert isinstance(answer, Finished)
    assert answer.declared_seconds == pytest.approx(1200, abs=1)
    assert answer.decoded_seconds == pytest.approx(6 * HOUR, abs=1)
    assert max(held) < min(held) + GROWTH


def test_s_r13_the_bomb_under_a_limit_below_its_length(bomb: Path, tmp_path: Path) -> None:
    """It is refused after an hour of sound, and nothing is left."""
    answer, held = watched(asked(bomb, tmp_path, HOUR))
    assert isinstance(answer, Refused)
    assert answer.code is StopCode.TOO_LONG
    assert answer.reason == "more than 1 hours of sound, which is the limit set"
    assert max(held, default=0) < min(held, default=0) + GROWTH
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", [False, True])
def test_ten_hours_in_the_memory_of_ten_minutes(call: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter
    """Two sides, alike or of a call: what the child holds at the end is what it held at the beginning."""
    with Tape(tmp_path / "part.aac", "adts") as tape:
        sound = tape.add_audio("aac", 44_100, sides=2)
        left, right, quiet = tone(5, 44_100), tone(5, 44_100, 500), silence(5, 44_100)
        turns = [np.hstack(each) for each in ((left, quiet), (quiet, right))]
        alike = [np.hstack([left, left])] * 2
        for second in range(0, 600, 10):
            for number, turn in enumerate(turns if call else alike):
                tape.put(sound, turn, at=second + 5.0 * number)
        tape.end(sound)
    part = (tmp_path / "part.aac").read_bytes()
    (tmp_path / "ten.aac").write_bytes(part * 60)
    answer, held = watched(asked(tmp_path / "ten.aac", tmp_path, 11 * HOUR))
    assert isinstance(answer, Finished)
    assert answer.decoded_seconds == pytest.approx(10 * HOUR, abs=10)
    assert answer.sides == (2 if call else 1)
    assert read_header(tmp_path / "audio.w64").seconds == answer.decoded_seconds
    eighth = len(held) // 8
    assert median(held[-eighth:]) < median(held[:eighth]) + GROWTH
    print(f"{held[0]:.0f} MB at first, {held[-1]:.0f} MB at last, {max(held):.0f} MB at the peak")  # noqa: T201 - the record of a deep run

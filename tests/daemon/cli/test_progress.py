"""Progress tells news on stderr, and leaves stdout and the terminal to the results."""

import io
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from rich.console import Console

from daemon.cli import progress
from daemon.cli.progress import Bars, Lines, position_of, state_of
from storage.readiness import Readiness
from storage.record import Milestone, Stop, StopCode

NOW = datetime.now(UTC)
STOP = Stop(code=StopCode.SILENT, reason="", at=NOW, by="x")


def at(milestone: str, **changes: Any) -> Readiness:
    """Return a record that is worked on at a milestone."""
    given: dict[str, Any] = {
        "id": UUID(int=1),
        "owner_id": UUID(int=2),
        "milestone": Milestone(milestone),
        "milestone_since": NOW,
        "created_at": NOW,
        "failures": 1,
        "edition": 1,
        "stop": None,
        "title": "",
        "description": "",
        "topics": (),
        "filename": "a.wav",
        "asked_language": None,
        "found_language": None,
        "declared_seconds": None,
        "decoded_seconds": None,
        "audio_warnings": (),
        "recogniser": None,
        "recognised_seconds": 0.0,
        "store_id": UUID(int=3),
        "audio_path": None,
        "text": None,
        "translate": False,
        "corrections": 0,
        "left_name": "",
        "right_name": "",
        "gaps": 0,
        "gap_seconds": 0.0,
        "is_silent": False,
        "milestone_seconds": 0.0,
        "held_seconds": 1.0,
        "wakes_in": 0.0,
        "queue_position": None,
    }
    return Readiness(**(given | changes))


@pytest.mark.parametrize(
    ("found", "state", "position"),
    [
        (at("created"), "converting", ""),
        (at("created", held_seconds=None, failures=0, queue_position=1), "converting", ""),
        (at("created", held_seconds=None, failures=0, queue_position=12), "waiting as number 12", ""),
        (at("converted", decoded_seconds=240.0), "recognising", "0:00 / 4:00"),
        (at("transcribe", decoded_seconds=240.0, recognised_seconds=42.5), "recognising", "0:42 / 4:00"),
        (
            at("transcribe", held_seconds=None, failures=2, wakes_in=9.6),
            "failed 2 in a row, again in 0:09",
            "",
        ),
        (at("transcribe", held_seconds=None, failures=2), "failed 2 in a row, again", ""),
        (at("transcribe", stop=STOP, held_seconds=None), "stopped", ""),
        (
            at("done", decoded_seconds=3601.0, recognised_seconds=3599.0, held_seconds=None),
            "done",
            "1:00:01 / 1:00:01",
        ),
    ],
)
def test_a_word_or_two_say_what_is_happening(found: Readiness, state: str, position: str) -> None:
    """A person sees whether to wait, and for what."""
    assert (state_of(found), position_of(found)) == (state, position)


def test_lines_tell_news_and_are_sparse_otherwise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of state at once; mere progress and countdowns only now and then; repetition never."""
    clock = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    lines = Lines(["a.wav"])
    for found in (
        at("created"),
        at("created"),
        at("transcribe", decoded_seconds=240.0),
        at("transcribe", decoded_seconds=240.0, recognised_seconds=10),
        at("transcribe", decoded_seconds=240.0, recognised_seconds=20),
        at("transcribe", held_seconds=None, failures=2, wakes_in=9.0),
        at("transcribe", held_seconds=None, failures=2, wakes_in=8.0),
        at("transcribe", decoded_seconds=240.0, recognised_seconds=30),
    ):
        clock[0] += 1.0
        lines.at(0, found)
    clock[0] += progress.LINE_SECONDS
    lines.at(0, at("transcribe", decoded_seconds=240.0, recognised_seconds=60))
    clock[0] += progress.LINE_SECONDS
    lines.at(0, at("transcribe", decoded_seconds=240.0, recognised_seconds=60))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "rubezh: a.wav: converting",
        "rubezh: a.wav: recognising, 0:00 / 4:00",
        "rubezh: a.wav: failed 2 in a row, again in 0:09",
        "rubezh: a.wav: recognising, 0:30 / 4:00",
        "rubezh: a.wav: recognising, 1:00 / 4:00",
    ]


def test_a_copy_is_mentioned_only_when_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most are over before one could read of them."""
    clock = [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    lines = Lines(["a.wav"])
    lines.receiving(0, 0.1)
    clock[0] += 1
    lines.receiving(0, 0.2)
    assert capsys.readouterr().err == ""
    clock[0] += progress.LINE_SECONDS
    lines.receiving(0, 0.9)
    assert capsys.readouterr().err == "rubezh: a.wav: copying, 90%\n"


def test_bars_show_each_recording_and_no_markup_of_its_name(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Names are names; results and log entries stand above the bars, on their own streams."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, height=20)
    bars = Bars(["[bold]a.wav", "b.wav"], console)
    with bars:
        bars.receiving(1, 0.5)
        bars.at(0, at("transcribe", decoded_seconds=240.0, recognised_seconds=42.0))
        bars.result("Text.\n")
        bars.log.buffer.write(b"an entry\n")
        bars.log.buffer.flush()
    drawn = screen.getvalue()
    assert "[bold]a.wav" in drawn
    assert "0:42 / 4:00" in drawn
    assert "recognising" in drawn
    assert "an entry" in drawn
    assert "Text." not in drawn
    assert capsysbinary.readouterr() == (b"Text.\n", b"")


def test_of_many_recordings_only_those_at_work_have_a_bar() -> None:
    """A hundred of them fit any terminal."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, height=20)
    bars = Bars([f"{number:03}.wav" for number in range(100)], console)
    with bars:
        bars.at(7, at("transcribe", decoded_seconds=240.0))
        bars.at(8, at("created", held_seconds=None, failures=0, queue_position=3))
        bars.at(9, at("done"))
    drawn = screen.getvalue()
    assert "007.wav" in drawn
    assert not any(name in drawn for name in ("008.wav", "009.wav", "050.wav"))

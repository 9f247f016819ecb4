"""The stages form one line, from the first milestone to the last."""

import os
import re
from pathlib import Path

import pytest
from attrs import evolve, frozen

from daemon.line import BrokenLineError, build_line, check_line, slots_of, whisper_threads
from daemon.settings import ConvertSettings, Settings, WhisperSettings
from stages.stage import Stage
from storage.folder import StateFolder
from storage.record import Milestone
from tests.daemon.assembly import Told

CREATED, CONVERTED, TRANSCRIBE, DONE = Milestone


@frozen(kw_only=True)
class Going(Told):
    """A stage that goes where it likes."""

    to: Milestone

    @property
    def gives(self) -> Milestone:
        """Anywhere."""
        return self.to


def going(*ways: tuple[Milestone, Milestone]) -> list[Stage]:
    """Return stages that go these ways."""
    return [Going(takes=takes, to=gives) for takes, gives in ways]


WHOLE = ((CREATED, CONVERTED), (CONVERTED, TRANSCRIBE), (TRANSCRIBE, DONE))


@pytest.mark.parametrize(
    ("ways", "fault"),
    [
        ((), "no stage takes created; no stage takes converted; no stage takes transcribe"),
        (WHOLE[:1] + WHOLE[2:], "no stage takes converted"),
        (WHOLE[1:], "no stage takes created"),
        ((*WHOLE, WHOLE[2]), "from_transcribe, from_transcribe takes transcribe"),
        (
            (WHOLE[0], (CONVERTED, CREATED), WHOLE[2]),
            "from_converted brings records from converted to created instead of transcribe",
        ),
        (
            (WHOLE[0], (CONVERTED, CONVERTED), WHOLE[2]),
            "from_converted brings records from converted to converted instead of transcribe",
        ),
        (
            ((CREATED, TRANSCRIBE), *WHOLE[1:]),
            "from_created brings records from created to transcribe instead of converted",
        ),
        ((*WHOLE, (DONE, CREATED)), "from_done takes done, where a record has arrived"),
        (
            (WHOLE[1], WHOLE[0], WHOLE[2]),
            "from_converted, which takes converted, stands before from_created",
        ),
    ],
)
def test_s_p5_stages_that_do_not_chain_are_refused(
    ways: tuple[tuple[Milestone, Milestone], ...], fault: str
) -> None:
    """A gap, a double, a loop, a leap, a way beyond the end: each in a sentence that names the milestone."""
    expected = f"the line must pass created -> converted -> transcribe -> done, but {fault}"
    with pytest.raises(BrokenLineError, match=f"^{re.escape(expected)}$"):
        check_line(going(*ways))


def test_s_p5_the_stages_of_the_service_chain(tmp_path: Path) -> None:
    """What ships goes from the first milestone to the last."""
    line = build_line(Settings(state=tmp_path), StateFolder(tmp_path))
    assert [(stage.takes, stage.gives) for stage in line] == list(WHOLE)
    assert [stage.lane for stage in line] == ["convert", "whisper", "whisper"]


def test_every_lane_of_the_line_has_its_slots(tmp_path: Path) -> None:
    """As many as are set."""
    settings = Settings(state=tmp_path, convert=ConvertSettings(slots=3), whisper=WhisperSettings(slots=2))
    line = build_line(settings, StateFolder(tmp_path))
    assert slots_of(settings, line) == {"convert": 3, "whisper": 2}


def test_recognisers_share_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unless their threads are set; each has one at least, also where the number of cores is unknown."""
    settings = Settings(state=tmp_path, whisper=WhisperSettings(slots=2))
    monkeypatch.setattr(os, "cpu_count", lambda: 9)
    assert whisper_threads(settings) == 4
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert whisper_threads(settings) == 1
    assert whisper_threads(evolve(settings, whisper=WhisperSettings(threads=7, slots=2))) == 7

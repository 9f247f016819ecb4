"""A recognition is begun by the recogniser of the lane, and what it says is what the row gets."""

from pathlib import Path

import pytest

from daemon.children import open_children
from stages.begin_recognition import BeginRecognition
from stages.recognisers.whisper import Whisper
from stages.recognisers.whisper_operation import begun
from stages.recognisers.whisper_operation import written as as_state
from stages.stage import Hopeless, Reached
from storage.errors import MeansAway
from storage.record import Milestone, OperationBegun, StopCode
from tests.stages.nouns import a_record, a_workplace
from tests.stages.recognisers.speech import silence, written


@pytest.fixture
def stage(tmp_path: Path) -> BeginRecognition:
    """The stage with the recogniser of this machine, whose model is nowhere."""
    whisper = Whisper(
        model=str(tmp_path / "no model"),
        models=tmp_path,
        threads=1,
        beam_size=5,
        batch_size=8,
        memory_bytes=2**31,
        shortest_seconds=120,
        longest_seconds=300,
    )
    return BeginRecognition(recogniser=whisper, lease_seconds=60)


async def test_an_operation_begins_at_the_first_sample(stage: BeginRecognition, tmp_path: Path) -> None:
    """No model is needed for that, nor a child."""
    copy = written(tmp_path / "audio.w64", silence(3))
    async with open_children(cpu_threads=1) as children:
        outcome = await stage.work(a_record(), a_workplace(copy, children))
    operation = as_state(begun(48_000))
    assert outcome == Reached(OperationBegun(recogniser="whisper", operation=operation))


async def test_a_missing_copy_is_hopeless(stage: BeginRecognition, tmp_path: Path) -> None:
    """Its store is there and it is not."""
    async with open_children(cpu_threads=1) as children:
        outcome = await stage.work(a_record(), a_workplace(tmp_path / "gone.w64", children))
    assert isinstance(outcome, Hopeless)
    assert outcome.code is StopCode.AUDIO_MISSING


async def test_the_stage_is_its_recognisers(stage: BeginRecognition) -> None:
    """Its lane, its limits and its means."""
    record = a_record()
    assert (stage.takes, stage.gives) == (Milestone.CONVERTED, Milestone.TRANSCRIBE)
    assert stage.lane == stage.recogniser.name == "whisper"
    assert stage.time_limit(record) == stage.recogniser.time_limit(record)
    assert stage.milestone_limit(record) == stage.recogniser.whole_limit(record)
    with pytest.raises(MeansAway, match="there is no Whisper model at"):
        await stage.check_means()

"""A recogniser that crashes on one piece, hangs on another, leaves a third half done: all of it is told."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve, frozen

from daemon.children import ChildPool, open_children
from stages.media.wave64 import RATE
from stages.recognisers import whisper as module
from stages.recognisers.recogniser import Finished, InProgress
from stages.recognisers.whisper import Whisper
from stages.stage import Hopeless, Tools
from storage.errors import StageFailed
from storage.record import Advance, Gap, Record, Segment, StopCode
from tests.stages.nouns import a_record, a_workplace
from tests.stages.recognisers.speech import written

LIMIT = 5


@pytest.fixture
async def children() -> AsyncIterator[ChildPool]:
    """The real pool of child processes."""
    async with open_children(cpu_threads=1) as pool:
        yield pool


@frozen(kw_only=True)
class Ended:
    """How a recognition ended: its segments in order, its failures, and the stop if it was stopped."""

    segments: list[Segment]
    failures: int
    stop: Hopeless | None
    record: Record

    @property
    def gaps(self) -> list[tuple[float, float, Gap | None]]:
        """The marks."""
        return [(each.start, each.end, each.gap) for each in self.segments if each.gap is not None]


class Case:
    """A recording of so many seconds, whose recognition has these troubles."""

    def __init__(self, folder: Path, children: ChildPool, seconds: int, **troubles: list[int]) -> None:
        self.folder, self.children = folder, children
        model = folder / "model"
        model.mkdir()
        for name in ("model.bin", "config.json", "vocabulary.json", "tokenizer.json"):
            (model / name).write_text("{}")
        self.trouble(seconds, **troubles)
        self.whisper = Whisper(
            model=str(model),
            models=folder,
            threads=1,
            beam_size=1,
            batch_size=1,
            memory_bytes=2**30,
            shortest_seconds=120,
            longest_seconds=300,
        )
        self.copy = written(folder / "audio.w64", np.zeros(seconds * RATE, np.int16))
        self.tools = a_workplace(self.copy, children)

    def trouble(self, seconds: int, **troubles: list[int]) -> None:
        """Set the troubles."""
        whole = {"whole": seconds, "crashes": [], "hangs": [], "ends": [], **troubles}
        (self.folder / "model" / "troubles.json").write_text(json.dumps(whole))

    async def run(self, record: Record | None = None) -> Ended:
        """Recognise as claims do: a failure is told to the next attempt, and counted until it goes on."""
        if record is None:
            record = a_record()
            operation = await self.whisper.begin(record, self.tools)
            assert isinstance(operation, dict)
            record = evolve(record, operation=operation, recogniser="whisper")
        kept: dict[int, list[Segment]] = {}
        failures, fault, all_failures = 0, None, 0
        step: InProgress | Finished | Hopeless | None = None
        while failures < LIMIT:
            failures += 1
            tools: Tools = evolve(self.tools, last_fault=fault, attempts_left=LIMIT - failures)
            assert record.operation is not None
            try:
                step = await self.whisper.advance(evolve(record, failures=failures), record.operation, tools)
            except StageFailed as error:
                fault, all_failures = error.fault, all_failures + 1
                continue
            found = step.findings if isinstance(step, Hopeless) else step
            assert isinstance(found, Advance | InProgress | Finished)
            if isinstance(step, InProgress) and step.anew:
                kept.clear()
            for segment in found.segments:
                kept.setdefault(segment.slice, []).append(segment)
            record = evolve(record, operation=found.operation, found_language=found.found_language)
            failures, fault = 0, None
            if not isinstance(step, InProgress):
                break
        return Ended(
            segments=[segment for key in sorted(kept) for segment in kept[key]],
            failures=all_failures,
            stop=step if isinstance(step, Hopeless) else None,
            record=record,
        )


@pytest.fixture(autouse=True)
def troubled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the troubled child recognise, and little patience with it."""
    monkeypatch.setattr(module, "_CHILD", "tests.stages.recognisers.troubled_child")
    monkeypatch.setattr(module, "_LEAST_SECONDS", 1.0)
    monkeypatch.setattr(module, "_SLOWEST", 0.001)


async def test_s_r15_one_piece_crashes_one_hangs_and_the_rest_is_text(
    children: ChildPool, tmp_path: Path
) -> None:
    """Done with two marks that say why, and every other second in its place, once."""
    case = Case(tmp_path, children, 1200, crashes=[310], hangs=[900])
    ended = await case.run()
    assert ended.stop is None
    assert [why for _, _, why in ended.gaps] == [Gap.CRASHED, Gap.TOO_SLOW]
    for (start, end, _), bad in zip(ended.gaps, (310, 900), strict=True):
        assert start <= bad < end
        assert end - start <= 20
    said = [round(each.start) for each in ended.segments if each.gap is None]
    marked = [second for start, end, _ in ended.gaps for second in range(round(start), round(end))]
    assert sorted(said + marked) == list(range(1200))
    assert ended.failures >= 8


async def test_s_r16_a_child_that_leaves_half_done_loses_nothing(children: ChildPool, tmp_path: Path) -> None:
    """What it said of a slice that has no end is no text, and is said again in smaller parts."""
    case = Case(tmp_path, children, 400, ends=[200])
    ended = await case.run()
    assert ended.stop is None
    ((start, end, why),) = ended.gaps
    assert why is Gap.CRASHED
    assert start <= 200 < end
    said = [round(each.start) for each in ended.segments if each.gap is None]
    assert said == [second for second in range(400) if not start <= second < end]


async def test_a_trouble_that_passes_costs_nothing_but_its_failures(
    children: ChildPool, tmp_path: Path
) -> None:
    """No mark where a later attempt succeeds."""
    case = Case(tmp_path, children, 100, crashes=[50])
    record = a_record()
    operation = await case.whisper.begin(record, case.tools)
    assert isinstance(operation, dict)
    with pytest.raises(StageFailed) as failed:
        await case.whisper.advance(evolve(record, failures=1), operation, case.tools)
    assert failed.value.fault is not None
    case.trouble(100)
    tools = evolve(case.tools, last_fault=failed.value.fault, attempts_left=LIMIT - 2)
    step = await case.whisper.advance(evolve(record, failures=2), operation, tools)
    assert isinstance(step, Finished)
    assert len(step.segments) == 100


async def test_s_r17_a_text_full_of_holes_is_stopped_and_begins_anew_when_lifted(
    children: ChildPool, tmp_path: Path
) -> None:
    """Never done; what there is can be read, and after the lift none of it is left over."""
    case = Case(tmp_path, children, 600, crashes=list(range(100, 600)))
    ended = await case.run()
    assert ended.stop is not None
    assert ended.stop.code is StopCode.INCOMPLETE_RECOGNITION
    assert "in a row" in ended.stop.reason
    assert ended.segments
    case.trouble(600)
    lifted = await case.run(ended.record)
    assert lifted.stop is None
    assert [round(each.start) for each in lifted.segments] == list(range(600))


async def test_a_short_recording_of_which_half_is_lost_is_stopped(
    children: ChildPool, tmp_path: Path
) -> None:
    """Twenty seconds of thirty are too much, though they are but one piece."""
    ended = await Case(tmp_path, children, 30, crashes=[5]).run()
    assert ended.stop is not None
    assert ended.stop.reason == "20 of 30 s of speech have no text"


async def test_what_is_not_the_audios_fault_gives_nothing_up(children: ChildPool, tmp_path: Path) -> None:
    """A child that ends or lacks memory before it begins, a copy that cannot be read: no word of it."""
    case = Case(tmp_path, children, 30)
    operation = await case.whisper.begin(a_record(), case.tools)
    assert isinstance(operation, dict)
    for trouble in ("dies_first", "unreadable", "too_small"):
        case.trouble(30, **{trouble: [1]})
        with pytest.raises(StageFailed) as failed:
            await case.whisper.advance(evolve(a_record(), failures=1), operation, case.tools)
        assert failed.value.fault is None

"""The local recogniser with its real process and its real model."""

import itertools
import os
import re
from collections.abc import AsyncIterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from attrs import evolve
from numpy.typing import NDArray

from daemon.children import ChildPool, open_children
from stages.media.wave64 import RATE
from stages.recognisers.recogniser import Finished, InProgress
from stages.recognisers.whisper import SliceFailed, Whisper
from stages.stage import Hopeless, Tools
from storage.errors import MeansAway
from storage.record import Record, Segment, StopCode
from tests.processes import is_alive
from tests.stages.nouns import a_record, a_workplace
from tests.stages.recognisers.speech import decoded, noise, silence, written


@pytest.fixture
async def children() -> AsyncIterator[ChildPool]:
    """The real pool of child processes."""
    async with open_children(cpu_threads=2) as pool:
        yield pool


@pytest.fixture
def whisper(models: Path) -> Whisper:
    """The recogniser as it is set by default."""
    return Whisper(
        model="base",
        models=models,
        threads=2,
        beam_size=5,
        batch_size=8,
        memory_bytes=3 * 2**30,
        shortest_seconds=120,
        longest_seconds=300,
    )


class Run:
    """A record on its way through a recogniser, as its claims see it."""

    def __init__(self, whisper: Whisper, tools: Tools, record: Record) -> None:
        self.whisper, self.tools, self.record = whisper, tools, record
        self.segments: list[Segment] = []
        self.ends: list[float] = []

    async def begin(self) -> None:
        """Begin."""
        operation = await self.whisper.begin(self.record, self.tools)
        assert isinstance(operation, dict)
        self.record = evolve(self.record, operation=operation, recogniser="whisper")

    async def step(self) -> bool:
        """Advance once, save what comes of it, and tell whether there is more."""
        operation = self.record.operation
        assert operation is not None
        step = await self.whisper.advance(self.record, operation, self.tools)
        assert isinstance(step, InProgress | Finished)
        self.segments += step.segments
        self.ends.append(step.recognised_seconds)
        self.record = evolve(
            self.record,
            operation=step.operation,
            found_language=step.found_language,
            recognised_seconds=step.recognised_seconds,
        )
        return isinstance(step, InProgress)

    async def to_the_end(self) -> "Run":
        """Begin, and advance until it is finished."""
        await self.begin()
        while await self.step():
            pass
        return self

    @property
    def text(self) -> str:
        """All segments' text."""
        return " ".join(segment.text for segment in self.segments)

    @property
    def operation(self) -> dict[str, Any]:
        """The state that was saved last."""
        assert self.record.operation is not None
        return self.record.operation


def run_of(whisper: Whisper, children: ChildPool, copy: Path, **changes: Any) -> Run:
    """Make a record of a recognition copy."""
    return Run(whisper, a_workplace(copy, children), a_record(**changes))


def words(text: str) -> list[str]:
    """Return the words of a text as they sound."""
    return re.sub(r"[^\w\s]", "", text.lower()).split()


@pytest.mark.model
async def test_speech_becomes_text_with_the_language_that_was_found(
    whisper: Whisper, children: ChildPool, sample_copy: Path, said: str
) -> None:
    """Word by word, in order, within the recording."""
    run = await run_of(whisper, children, sample_copy).to_the_end()
    assert words(run.text) == words(said)
    assert run.record.found_language == "en"
    assert run.ends == [pytest.approx(run.operation["total_samples"] / RATE)]
    edges = [edge for segment in run.segments for edge in (segment.start, segment.end)]
    assert edges == sorted(edges)
    assert 0 <= edges[0] < edges[-1] <= run.ends[-1]
    assert [(segment.slice, segment.number) for segment in run.segments] == [
        (0, number) for number in range(len(run.segments))
    ]


@pytest.mark.model
async def test_s_r4_a_recognition_broken_off_after_every_slice_ends_with_the_same_text(
    whisper: Whisper, sample: NDArray[np.int16], tmp_path: Path
) -> None:
    """Same boundaries, segments, times and language, though each slice had a process of its own."""
    whisper = evolve(whisper, shortest_seconds=5, longest_seconds=12)
    copy = written(tmp_path / "audio.w64", np.concatenate([sample, silence(1), sample]))
    async with open_children(cpu_threads=2) as pool:
        whole = await run_of(whisper, pool, copy).to_the_end()
    assert len(whole.ends) > 2

    broken: Run | None = None
    more = True
    while more:
        async with open_children(cpu_threads=2) as pool:
            if broken is None:
                broken = run_of(whisper, pool, copy)
                await broken.begin()
            broken.tools = a_workplace(copy, pool)
            more = await broken.step()
    assert broken is not None
    assert broken.ends == whole.ends
    assert broken.segments == whole.segments
    assert broken.record.found_language == whole.record.found_language == "en"
    lengths = [b - a for a, b in itertools.pairwise([0.0, *whole.ends])]
    assert all(5 <= length <= 12 for length in lengths[:-1])


@pytest.mark.model
async def test_a_slice_that_is_done_twice_has_the_same_keys_and_text(
    whisper: Whisper, children: ChildPool, sample_copy: Path
) -> None:
    """A settle that was lost costs the work and nothing else; the warm process serves both."""
    whisper = evolve(whisper, shortest_seconds=5, longest_seconds=12)
    run = run_of(whisper, children, sample_copy)
    await run.begin()
    first = await whisper.advance(run.record, run.operation, run.tools)
    again = await whisper.advance(run.record, run.operation, run.tools)
    assert first == again
    assert isinstance(first, InProgress)
    assert first.segments
    assert first.delay == 0


@pytest.mark.model
async def test_nothing_said_is_no_text(whisper: Whisper, children: ChildPool, tmp_path: Path) -> None:
    """Neither digital silence nor noise, with no language made of it."""
    copy = written(tmp_path / "audio.w64", np.concatenate([silence(20), noise(20), silence(5)]))
    run = await run_of(evolve(whisper, shortest_seconds=5, longest_seconds=12), children, copy).to_the_end()
    assert run.segments == []
    assert run.record.found_language is None
    assert run.ends[-1] == 45


@pytest.mark.model
async def test_no_segment_reaches_over_a_long_silence(
    whisper: Whisper, children: ChildPool, long_copy: Path, said: str
) -> None:
    """Text before it ends before it, and text behind it begins behind it."""
    run = await run_of(whisper, children, long_copy).to_the_end()
    assert SequenceMatcher(None, words(run.text), words(said) * 2).ratio() > 0.95
    assert all(segment.end <= 19 or segment.start >= 37 for segment in run.segments)


@pytest.mark.model
@pytest.mark.recordings
@pytest.mark.parametrize(
    ("name", "language", "said"),
    [
        ("ru_deepspeech_bednyaga.wav", "ru", "на его месте"),
        ("ru_pisets_neural.wav", "ru", "сети это хорошо"),
        ("en_jfk_inaugural.flac", "en", "ask not what your country can do for you"),
        ("de_picovoice.wav", "de", "hinter diesem portal"),
    ],
)
async def test_real_recordings_are_understood(
    whisper: Whisper,
    children: ChildPool,
    recordings: Path,
    tmp_path: Path,
    name: str,
    language: str,
    said: str,
) -> None:
    """In the language that is spoken in them."""
    copy = written(tmp_path / "audio.w64", decoded(recordings / name))
    run = await run_of(whisper, children, copy).to_the_end()
    assert said in " ".join(words(run.text))
    assert run.record.found_language == language


@pytest.mark.model
async def test_the_language_the_owner_asked_for_wins(
    whisper: Whisper, children: ChildPool, sample_copy: Path
) -> None:
    """Over the one that is spoken; it is not told as found, and an unknown one is a verdict."""
    run = await run_of(whisper, children, sample_copy, asked_language="de-AT").to_the_end()
    assert run.record.found_language is None
    assert run.operation["language"] is None
    assert run.text

    wrong = run_of(whisper, children, sample_copy, asked_language="tlh")
    await wrong.begin()
    verdict = await whisper.advance(wrong.record, wrong.operation, wrong.tools)
    assert isinstance(verdict, Hopeless)
    assert verdict.code is StopCode.RECOGNISER_REFUSED
    assert "'tlh'" in verdict.reason


@pytest.mark.model
async def test_s_r7_a_recognisers_process_is_warm_between_claims_and_dead_after_a_cancel(
    whisper: Whisper, children: ChildPool, sample_copy: Path
) -> None:
    """The slot is free only then."""
    whisper = evolve(whisper, shortest_seconds=5, longest_seconds=12)
    run = run_of(whisper, children, sample_copy)
    await run.begin()
    await run.step()
    (first,) = pids(children)
    again = run_of(whisper, children, sample_copy)
    await again.begin()
    await again.step()
    assert pids(children) == [first]
    with trio.move_on_after(0.2) as soon:
        await again.step()
    assert soon.cancelled_caught
    assert not is_alive(first)
    assert await again.step() is False
    assert pids(children) != [first]


def pids(children: ChildPool) -> list[int]:
    """The processes that are kept warm."""
    return [warm.child.pid for warm in children._warm["whisper"]]  # noqa: SLF001 - nobody else needs to know


@pytest.mark.model
async def test_a_process_without_memory_for_its_model_is_a_lack_of_means(
    whisper: Whisper, children: ChildPool, sample_copy: Path
) -> None:
    """Every record would meet it, and the sentence names the limit."""
    run = run_of(evolve(whisper, memory_bytes=700 * 2**20), children, sample_copy)
    await run.begin()
    with pytest.raises(MeansAway, match=r"memory.*more memory for it than 700 MiB"):
        await run.step()


async def test_a_model_that_cannot_be_loaded_is_a_lack_of_means(
    children: ChildPool, sample_copy: Path, tmp_path: Path
) -> None:
    """Every record would meet it."""
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("model.bin", "config.json", "vocabulary.json", "tokenizer.json"):
        (broken / name).write_text("{}")
    whisper = Whisper(
        model=str(broken),
        models=tmp_path,
        threads=1,
        beam_size=1,
        batch_size=8,
        memory_bytes=3 * 2**30,
        shortest_seconds=120,
        longest_seconds=300,
    )
    await whisper.check_means()
    run = run_of(whisper, children, sample_copy)
    await run.begin()
    with pytest.raises(MeansAway, match="cannot be loaded"):
        await run.step()


async def test_a_missing_copy_is_a_verdict_only_when_its_store_is_there(
    children: ChildPool, tmp_path: Path
) -> None:
    """A disk that is not mounted says nothing about a record."""
    whisper = Whisper(
        model="nowhere",
        models=tmp_path,
        threads=1,
        beam_size=1,
        batch_size=8,
        memory_bytes=2**30,
        shortest_seconds=120,
        longest_seconds=300,
    )
    run = run_of(whisper, children, tmp_path / "gone.w64")
    for asked in (whisper.begin(run.record, run.tools), whisper.advance(run.record, {}, run.tools)):
        verdict = await asked
        assert isinstance(verdict, Hopeless)
        assert verdict.code is StopCode.AUDIO_MISSING
    (run.tools.folder.parents[2] / "store.json").unlink()
    with pytest.raises(OSError, match="mount it again"):
        await whisper.begin(run.record, run.tools)


@pytest.mark.model
async def test_a_damaged_copy_is_a_failure_and_no_verdict(
    whisper: Whisper, children: ChildPool, sample: NDArray[np.int16], tmp_path: Path
) -> None:
    """It may be read again when its disk is well; the warm process lives on."""
    copy = written(tmp_path / "audio.w64", sample)
    run = run_of(whisper, children, copy)
    await run.begin()
    os.truncate(copy, 100_000)
    with pytest.raises(SliceFailed, match=r"the slice at 0\.0 s was not recognised: DamagedCopy"):
        await run.step()


def test_limits_grow_with_the_recording() -> None:
    """A healthy day of audio is not overdue, while one step has the same limit in every record."""
    whisper = Whisper(
        model="base",
        models=Path("/nowhere"),
        threads=1,
        beam_size=5,
        batch_size=8,
        memory_bytes=2**30,
        shortest_seconds=120,
        longest_seconds=300,
    )
    short, day = (a_record(decoded_seconds=seconds) for seconds in (10.0, 86_400.0))
    assert whisper.time_limit(short) == whisper.time_limit(day) > 2 * 300
    assert whisper.whole_limit(day) - whisper.whole_limit(short) > 2 * 86_000
    assert whisper.whole_limit(short) > 2 * whisper.time_limit(short)

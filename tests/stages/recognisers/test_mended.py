"""A copy that is damaged or gone is made again from its source, by whoever recognises the record."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import evolve, fields
from structlog.testing import capture_logs

from daemon.children import open_children
from stages.advance_recognition import AdvanceRecognition
from stages.begin_recognition import BeginRecognition
from stages.media.converter import Converter
from stages.recognisers.mended import Mended
from stages.recognisers.whisper import Whisper
from stages.stage import Hopeless, Reached, Tools
from storage.errors import MeansAway
from storage.record import Record, StopCode
from tests.stages.media.shelf import wav
from tests.stages.media.studio import tone
from tests.stages.nouns import a_record, a_workplace


def mended(store: Path) -> Mended:
    """The recogniser of this machine, whose model is nowhere, over copies that mend themselves."""
    whisper = Whisper(
        model=str(store / "no model"),
        models=store,
        threads=1,
        beam_size=5,
        batch_size=8,
        memory_bytes=2**31,
        shortest_seconds=120,
        longest_seconds=300,
    )
    converter = Converter(store=store, memory_bytes=2**30, longest_seconds=3600)
    return Mended(recogniser=whisper, converter=converter)


@asynccontextmanager
async def a_converted_record(root: Path) -> AsyncIterator[tuple[Record, Tools]]:
    """A record with its source and its copy in a store, and the tools of the next attempt."""
    record = a_record()
    async with open_children(cpu_threads=1) as children:
        tools = a_workplace(root / "elsewhere", children, root)
        tools.source.write_bytes(wav(tone(3, 16_000)))
        made = await mended(root).converter.convert(record, tools)
        assert not isinstance(made, Hopeless)
        earlier = tools.folder.with_name("earlier")
        earlier.mkdir()
        copy = made[0].rename(earlier / "audio.w64")
        yield record, evolve(tools, audio=copy)


def cut(copy: Path) -> None:
    """Lose the copy's end, as a disk does that lied about a flush."""
    copy.write_bytes(copy.read_bytes()[:-1000])


def empty(copy: Path) -> None:
    """Lose all of it but the name."""
    copy.write_bytes(b"")


def lose(copy: Path) -> None:
    """Lose the name too, and the folder."""
    copy.unlink()
    copy.parent.rmdir()


@pytest.mark.parametrize("damage", [cut, empty, lose])
async def test_s_r9_a_damaged_copy_is_made_again(damage: Callable[[Path], None], tmp_path: Path) -> None:
    """It is what it was, where it was; the attempt goes on with it, and the log says so once."""
    async with a_converted_record(tmp_path) as (record, tools):
        assert tools.audio is not None
        whole = tools.audio.read_bytes()
        damage(tools.audio)
        stage = BeginRecognition(recogniser=mended(tmp_path), lease_seconds=60)
        with capture_logs() as said:
            outcome = await stage.work(record, tools)
        assert isinstance(outcome, Reached)
        assert tools.audio.read_bytes() == whole
        assert [entry["event"] for entry in said] == ["audio.mended"]
        assert list(tools.folder.iterdir()) == []


async def test_a_whole_copy_is_left_alone(tmp_path: Path) -> None:
    """Nothing is converted for it: its source may even be gone."""
    async with a_converted_record(tmp_path) as (record, tools):
        tools.source.unlink()
        stage = BeginRecognition(recogniser=mended(tmp_path), lease_seconds=60)
        assert isinstance(await stage.work(record, tools), Reached)


async def test_a_copy_damaged_between_two_slices_is_made_again(tmp_path: Path) -> None:
    """Also an operation under way finds it whole; what it lacks after that, here a model, is told as ever."""
    async with a_converted_record(tmp_path) as (record, tools):
        assert tools.audio is not None
        whole = tools.audio.read_bytes()
        cut(tools.audio)
        operation = {"next_sample": 0, "slice": 0, "total_samples": 48_000, "language": None}
        stage = AdvanceRecognition(recogniser=mended(tmp_path), lease_seconds=60)
        with pytest.raises(MeansAway, match="no Whisper model"):
            await stage.work(evolve(record, recogniser="whisper", operation=operation), tools)
        assert tools.audio.read_bytes() == whole


async def test_without_its_source_a_damaged_copy_is_the_end(tmp_path: Path) -> None:
    """The reason says both."""
    async with a_converted_record(tmp_path) as (record, tools):
        assert tools.audio is not None
        cut(tools.audio)
        tools.source.unlink()
        outcome = await BeginRecognition(recogniser=mended(tmp_path), lease_seconds=60).work(record, tools)
        assert isinstance(outcome, Hopeless)
        assert outcome.code is StopCode.AUDIO_MISSING
        assert "it is cut or unfinished, and it cannot be made again" in outcome.reason


async def test_a_store_that_is_away_is_no_damage(tmp_path: Path) -> None:
    """Nothing is made again in a place where the store should be."""
    async with a_converted_record(tmp_path) as (record, tools):
        assert tools.audio is not None
        lose(tools.audio)
        (tmp_path / "store.json").unlink()
        with pytest.raises(OSError, match="mount it again"):
            await BeginRecognition(recogniser=mended(tmp_path), lease_seconds=60).work(record, tools)


async def test_it_is_its_recogniser_with_time_for_a_conversion(tmp_path: Path) -> None:
    """Its name and means are the recogniser's, its limits leave room for the making of a copy."""
    both, record = mended(tmp_path), a_record()
    spare = both.converter.time_limit(record)
    assert both.name == both.recogniser.name
    assert both.time_limit(record) == both.recogniser.time_limit(record) + spare
    assert both.whole_limit(record) == both.recogniser.whole_limit(record) + spare
    with pytest.raises(MeansAway, match="there is no Whisper model at"):
        await both.check_means()


class Ready(Whisper):
    """The recogniser of this machine, as if its model were there."""

    async def check_means(self) -> None:
        """Have everything."""


async def test_a_full_disk_keeps_the_lane_closed_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a copy found none; for a recogniser that has only whole copies no room is needed."""
    both = mended(tmp_path)
    recogniser = Ready(**{field.name: getattr(both.recogniser, field.name) for field in fields(Whisper)})
    both = evolve(both, recogniser=recogniser, converter=both.converter)
    async with a_converted_record(tmp_path) as (record, tools):
        assert tools.audio is not None
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
        await both.check_means()
        cut(tools.audio)
        part = tools.folder / "audio.w64.part"
        part.symlink_to("/dev/full")
        with pytest.raises(MeansAway, match="is full"):
            await both.begin(record, tools)
        with pytest.raises(MeansAway, match="1 MiB left, and 256 are needed"):
            await both.check_means()
        part.unlink(missing_ok=True)
        await both.begin(record, tools)
        await both.check_means()

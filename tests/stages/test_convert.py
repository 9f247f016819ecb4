"""created -> converted, with the real child in a real store."""

import errno
import os
import re
import shutil
import signal
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import numpy as np
import pytest
import trio
from attrs import evolve

from daemon.children import open_children
from stages.convert import Convert
from stages.media import converter
from stages.media.converter import ConversionFailed, Converter
from stages.media.messages import Answer, Failed, Progressed, answer_to_json
from stages.media.wave64 import open_samples
from stages.stage import ChildDied, Children, Hopeless, Reached, Tools
from storage.errors import MeansAway
from storage.record import Conversion, Milestone, Record, StopCode

RATE = 16_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_record() -> Record:
    """Return a record that waits to be converted."""
    record_id = uuid4()
    return Record(
        id=record_id,
        owner_id=uuid4(),
        created_at=NOW,
        title="",
        description="",
        topics=(),
        asked_language=None,
        edition=1,
        filename="call.wav",
        channels="auto",
        track=None,
        hotwords="",
        translate=False,
        store_id=uuid4(),
        source_path=f"records/{record_id}/source",
        source_bytes=1,
        source_sha256=bytes(32),
        milestone=Milestone.CREATED,
        milestone_since=NOW,
        milestone_seconds=0.0,
        lane="convert",
        failures=1,
        claim_token=uuid4(),
        lease_until=NOW,
        stop=None,
        deleted_at=None,
        audio_path=None,
        declared_seconds=None,
        decoded_seconds=None,
        audio_warnings=(),
        recogniser=None,
        operation=None,
        found_language=None,
        recognised_seconds=0.0,
        recognised_text=None,
    )


def wav(seconds: float) -> bytes:
    """Return a telephone tone, 16 kHz mono."""
    samples = (np.sin(np.arange(round(seconds * RATE)) / 8) * 9000).astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, 1, RATE, RATE * 2, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that shows itself."""
    (tmp_path / "store.json").write_text("{}")
    return tmp_path


def stage_of(store: Path) -> Convert:
    """Return the stage with the service's own defaults."""
    return Convert(converter=converter_of(store), lease_seconds=60)


def converter_of(store: Path, **changes: Any) -> Converter:
    """Return the converter with the service's own defaults."""
    return evolve(Converter(store=store, memory_bytes=2**30, longest_seconds=24 * 3600), **changes)


@asynccontextmanager
async def tools_for(record: Record, store: Path, source: bytes | None) -> AsyncIterator[Tools]:
    """Put a source in the store and lend the tools of one attempt."""
    assert record.claim_token is not None
    folder = store / "records" / str(record.id) / str(record.claim_token)
    folder.mkdir(parents=True)
    if source is not None:
        (folder.parent / "source").write_bytes(source)
    async with open_children(cpu_threads=1) as children:
        yield Tools(
            source=folder.parent / "source",
            audio=None,
            folder=folder,
            children=children,
            token=record.claim_token,
            last_fault=None,
            attempts_left=4,
        )


def children() -> list[int]:
    """Return the pids of our decoding children."""
    mine = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in mine if b"stages.media.child" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def the_child() -> int:
    """Wait for our one child process and return its pid."""
    with trio.fail_after(20):
        while not (found := children()):  # noqa: ASYNC110 - nobody tells of a process that starts
            await trio.sleep(0.01)
    return found[0]


async def test_a_recording_is_converted(store: Path) -> None:
    """The copy is named by its place in the store, and what was found is the stage's own columns."""
    record = a_record()
    async with tools_for(record, store, wav(2)) as tools:
        outcome = await stage_of(store).work(record, tools)
    path = f"records/{record.id}/{record.claim_token}/audio.w64"
    assert outcome == Reached(
        Conversion(audio_path=path, declared_seconds=2.0, decoded_seconds=2.0, audio_warnings=())
    )
    assert len(open_samples(store / path)) == 2 * RATE


async def test_s_r1_what_is_not_media_is_hopeless_at_once(store: Path) -> None:
    """One attempt, the code of its kind, the full reason for the service owner."""
    record = a_record()
    async with tools_for(record, store, b"<html>404</html>") as tools:
        outcome = await stage_of(store).work(record, tools)
    assert isinstance(outcome, Hopeless)
    assert outcome.code == StopCode.NOT_MEDIA
    assert "no recording of a kind we take" in outcome.reason


async def test_the_longest_recording_is_a_setting(store: Path) -> None:
    """Over the limit set is hopeless."""
    record = a_record()
    async with tools_for(record, store, wav(2)) as tools:
        outcome = await evolve(stage_of(store), converter=converter_of(store, longest_seconds=1.0)).work(
            record, tools
        )
    assert isinstance(outcome, Hopeless)
    assert outcome.code == StopCode.TOO_LONG


async def test_the_track_asked_for_reaches_the_decoding(store: Path) -> None:
    """A track that is not there is refused with what was asked."""
    record = evolve(a_record(), track=3)
    async with tools_for(record, store, wav(2)) as tools:
        outcome = await stage_of(store).work(record, tools)
    assert outcome == Hopeless(
        StopCode.NO_AUDIO, "audio track 3 was asked for, counted from 0, and the file has 1"
    )


async def test_an_absent_source_in_a_sound_store_is_hopeless(store: Path) -> None:
    """The store shows itself, the attempt's folder is in it, and the source is not there."""
    record = a_record()
    async with tools_for(record, store, None) as tools:
        outcome = await stage_of(store).work(record, tools)
    assert isinstance(outcome, Hopeless)
    assert outcome.code == StopCode.AUDIO_MISSING


async def test_an_absent_source_in_an_absent_store_is_a_failure(store: Path) -> None:
    """A store that does not show itself may come back: nothing is concluded."""
    (store / "store.json").unlink()
    record = a_record()
    async with tools_for(record, store, None) as tools:
        with pytest.raises(ConversionFailed, match="No such file"):
            await stage_of(store).work(record, tools)


async def test_a_full_disk_is_told_to_the_lane(store: Path) -> None:
    """It would fail every record alike, so the lane is to know."""
    record = a_record()
    async with tools_for(record, store, wav(2)) as tools:
        (tools.folder / "audio.w64.part").symlink_to("/dev/full")
        with pytest.raises(MeansAway, match="is full"):
            await stage_of(store).work(record, tools)


async def test_a_lane_stays_closed_until_there_is_more_room_than_was_too_little(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the failed copy had taken is free again: that alone must not send the record into the wall."""
    answers: Iterator[Answer] = iter(
        [Progressed(decoded_seconds=36_000.0), Failed(reason="No space left", errno=errno.ENOSPC)]
    )

    class Full:
        async def send(self, message: object) -> None:
            """Take the request."""

        async def receive(self) -> dict[str, Any]:
            """Decode ten hours, and find the disk full."""
            return answer_to_json(next(answers))

    class Fulls:
        @asynccontextmanager
        async def started(self, recipe: object) -> AsyncIterator[Full]:  # noqa: ARG002 - the protocol's
            """Lend one."""
            yield Full()

    free = 2 * 2**30
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    stage, record = stage_of(store), a_record()
    await stage.check_means()
    async with tools_for(record, store, wav(2)) as tools:
        with pytest.raises(MeansAway, match="is full"):
            await stage.work(record, evolve(tools, children=cast("Children", Fulls())))
        with pytest.raises(MeansAway, match=r"2048 MiB left, and 3\d\d\d are needed"):
            await stage.check_means()
        free = 4 * 2**30
        await stage.check_means()
        assert isinstance(await stage.work(record, tools), Reached)
    free = 2 * 2**30
    await stage.check_means()


async def test_means_are_there_or_away(store: Path) -> None:
    """A disk with room is fine; a store that cannot be reached is not."""
    await stage_of(store).check_means()
    with pytest.raises(MeansAway, match="cannot be reached"):
        await stage_of(store / "elsewhere").check_means()


@pytest.mark.parametrize("sig", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
async def test_a_child_that_crashes_is_a_failure_that_names_the_signal(
    store: Path, sig: signal.Signals
) -> None:
    """Native code that falls over a recording fails the attempt and nothing else."""
    record = a_record()
    async with tools_for(record, store, wav(600)) as tools, trio.open_nursery() as nursery:

        async def crash() -> None:
            os.kill(await the_child(), sig)

        nursery.start_soon(crash)
        with pytest.raises(ChildDied, match=sig.name):
            await stage_of(store).work(record, tools)
        nursery.cancel_scope.cancel()


async def test_too_little_memory_is_a_failure(store: Path) -> None:
    """The limit is the child's own; what it says of it is told."""
    record = a_record()
    async with tools_for(record, store, wav(2)) as tools:
        with pytest.raises(ChildDied, match=r"[Mm]emory"):
            await evolve(stage_of(store), converter=converter_of(store, memory_bytes=190 * 2**20)).work(
                record, tools
            )


async def test_a_child_that_hangs_is_ended(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is a failure, long before the time limit of the attempt."""
    monkeypatch.setattr(converter, "_SILENT_SECONDS", 2.0)
    record = a_record()
    async with tools_for(record, store, wav(600)) as tools, trio.open_nursery() as nursery:

        async def hang() -> None:
            os.kill(await the_child(), signal.SIGSTOP)

        nursery.start_soon(hang)
        with pytest.raises(ConversionFailed, match="said nothing for 2 s"):
            await stage_of(store).work(record, tools)
        nursery.cancel_scope.cancel()


async def test_the_child_is_kept_to_its_own_folder_and_gains_nothing(store: Path) -> None:
    """Its folder is the attempt's, privileges are out of reach, its environment has nothing of ours."""
    record = a_record()
    async with tools_for(record, store, wav(600)) as tools, trio.open_nursery() as nursery:
        nursery.start_soon(stage_of(store).work, record, tools)
        place = Path(f"/proc/{await the_child()}")
        with trio.fail_after(20):
            while not (tools.folder / "audio.w64.part").exists():  # noqa: ASYNC110 - nobody tells of a file
                await trio.sleep(0.01)
        assert (place / "cwd").readlink() == tools.folder
        status = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines())
        assert status["NoNewPrivs"] == "1"
        known = {word.split(b"=")[0] for word in (place / "environ").read_bytes().split(b"\0") if word}
        assert not known & {b"USER", b"PGPASSWORD", b"RUBEZH_CONFIG", b"RUBEZH_STATE"}
        limits = (place / "limits").read_text()
        assert re.search(rf"Max address space +{2**30} ", limits)
        assert re.search(r"Max core file size +0 +0 ", limits)
        nursery.cancel_scope.cancel()


async def test_a_cancel_leaves_no_child_and_no_copy(store: Path) -> None:
    """Cancelled in the middle, the child is dead and reaped when the work has ended."""
    record = a_record()
    async with tools_for(record, store, wav(1800)) as tools:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage_of(store).work, record, tools)
            await the_child()
            await trio.sleep(0.1)
            nursery.cancel_scope.cancel()
        assert children() == []
        assert not (tools.folder / "audio.w64").exists()


def test_the_limits_leave_room(store: Path) -> None:
    """A ten-hour recording of many gigabytes gets hours; the milestone is worth several whole attempts."""
    record = evolve(a_record(), source_bytes=20 * 2**30)
    stage = stage_of(store)
    assert stage.time_limit(record) > 3600
    assert stage.milestone_limit(record) >= 5 * stage.time_limit(record)

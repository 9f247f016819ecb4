"""An attempt's own folder, and the tools that its stage is handed."""

import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import UUID, uuid4

import pytest
import trio
from attrs import evolve

from daemon.workplace import Workplace
from stages.stage import Children
from storage.audio import Store
from storage.claim import Claim
from storage.record import Record
from tests.stages.nouns import a_record

T = TypeVar("T")
NEXT_HOLDER = str(uuid4())


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """A workplace on an empty store."""
    store = Store(id=uuid4(), root=tmp_path)
    store.prepare()
    return Workplace(store=store, children=cast("Children", None))


def held(workplace: Workplace, audio: UUID | None = None) -> tuple[Claim, Record]:
    """Return a claimed record with a source, and a recognition copy made by the attempt `audio`."""
    record_id, token = uuid4(), uuid4()
    folder = workplace.store.record_folder(record_id)
    folder.mkdir()
    (folder / "source").write_bytes(b"RIFF")
    record = a_record(
        id=record_id,
        claim_token=token,
        source_path=f"records/{record_id}/source",
        audio_path=f"records/{record_id}/{audio}/audio.w64" if audio else None,
    )
    return Claim(record_id=record_id, token=token), record


async def test_the_tools_name_what_is_there(workplace: Workplace) -> None:
    """Absolute paths inside the store, and a folder named by the claim's token."""
    audio = uuid4()
    claim, record = held(workplace, audio)
    folder = workplace.store.record_folder(record.id)
    async with workplace.tools(claim, record, last_fault=None, attempts_left=0) as tools:
        assert tools.source == folder / "source"
        assert tools.audio == folder / str(audio) / "audio.w64"
        assert tools.folder == folder / str(claim.token)
        assert tools.folder.is_dir()
        assert tools.token == claim.token
        (tools.folder / "audio.w64").touch()
        assert tools.publish(tools.folder / "audio.w64") == f"records/{record.id}/{claim.token}/audio.w64"
        with pytest.raises(ValueError, match="subpath"):
            tools.publish(tools.source)


async def test_without_a_copy_there_is_no_audio(workplace: Workplace) -> None:
    """A record that was not converted yet."""
    claim, record = held(workplace)
    async with workplace.tools(claim, record, last_fault=None, attempts_left=0) as tools:
        assert tools.audio is None


async def test_folders_of_claims_that_are_gone_are_swept(workplace: Workplace) -> None:
    """All but this claim's own and the one that the row names; the source stays."""
    audio, gone = uuid4(), uuid4()
    claim, record = held(workplace, audio)
    folder = workplace.store.record_folder(record.id)
    for token in (audio, gone):
        (folder / str(token)).mkdir()
        (folder / str(token) / "audio.w64").write_bytes(b"audio")
    async with workplace.tools(claim, record, last_fault=None, attempts_left=0):
        assert {entry.name for entry in folder.iterdir()} == {"source", str(audio), str(claim.token)}


class SuspendedStore(Store):
    """Runs on a machine that stands still at the worst moment, while another daemon takes the record over."""

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Stand still, then do it."""
        if work == self._sweep_attempts:
            time.sleep(0.1)  # noqa: ASYNC251 - nothing of this process goes on
            (self.record_folder(arguments[0]) / NEXT_HOLDER).mkdir(exist_ok=True)
            (self.record_folder(arguments[0]) / NEXT_HOLDER / "audio.w64").touch()
        return await super().in_thread(work, *arguments)


async def test_a_suspended_process_sweeps_nothing_of_the_next_holder(workplace: Workplace) -> None:
    """It goes on where it stood, past its lease: what it sees then is not its own to judge."""
    claim, record = held(workplace)
    store = SuspendedStore(id=workplace.store.id, root=workplace.store.root)
    late = evolve(workplace, store=store)
    with trio.move_on_after(0.05) as lease:
        async with late.tools(claim, record, last_fault=None, attempts_left=0):
            await trio.sleep_forever()
    assert lease.cancelled_caught
    assert (store.record_folder(record.id) / NEXT_HOLDER / "audio.w64").exists()
    with trio.move_on_after(5):
        async with late.tools(claim, record, last_fault=None, attempts_left=0):
            assert not (store.record_folder(record.id) / NEXT_HOLDER).exists()


@pytest.mark.parametrize("ended_by", [None, ValueError])
async def test_an_empty_folder_does_not_stay(workplace: Workplace, ended_by: type[Exception] | None) -> None:
    """Most attempts write nothing; what one wrote stays for its settle to name, or for the sweep."""
    claim, record = held(workplace)
    folder = workplace.store.record_folder(record.id)
    try:
        async with workplace.tools(claim, record, last_fault=None, attempts_left=0):
            if ended_by:
                raise ended_by
    except ValueError:
        assert ended_by
    assert [entry.name for entry in folder.iterdir()] == ["source"]
    async with workplace.tools(claim, record, last_fault=None, attempts_left=0) as tools:
        (tools.folder / "audio.w64").touch()
    assert (folder / str(claim.token) / "audio.w64").exists()


async def test_a_folder_that_is_gone_is_no_error(workplace: Workplace) -> None:
    """A purge may have been there."""
    claim, record = held(workplace)
    async with workplace.tools(claim, record, last_fault=None, attempts_left=0) as tools:
        tools.folder.rmdir()


async def test_a_folder_that_cannot_be_removed_is_an_error(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody foresees that: it is told."""
    claim, record = held(workplace)

    def refuse(_: Path) -> None:
        raise OSError(errno.EACCES, "no")

    monkeypatch.setattr(Path, "rmdir", refuse)
    with pytest.raises(OSError, match="no"):
        async with workplace.tools(claim, record, last_fault=None, attempts_left=0):
            pass

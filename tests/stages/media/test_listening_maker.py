"""The talk with the child that makes listening copies, and what its answers mean."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import trio

from daemon.children import ChildPool, open_children
from stages.media import listening_maker
from stages.media.listening_maker import ListeningFailed, ListeningMaker
from stages.media.listening_messages import ListeningRequest, Made
from stages.media.wave64 import RATE, Writer
from stages.stage import ChildDied
from storage.errors import MeansAway

MAKER = ListeningMaker(memory_bytes=512 * 2**20, longest_seconds=36_000)


def ours() -> list[int]:
    """Return the pids of our children of this kind."""
    mine = map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split())
    child = b"stages.media.listening_child"
    return [pid for pid in mine if child in Path(f"/proc/{pid}/cmdline").read_bytes()]


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


async def still_ours() -> None:
    """Have nobody take it away."""
    await trio.lowlevel.checkpoint()


@pytest.fixture
async def children() -> AsyncIterator[ChildPool]:
    """Real children."""
    async with open_children(cpu_threads=1) as pool:
        yield pool


async def made(
    children: ChildPool, folder: Path, seconds: float = 2.0, maker: ListeningMaker = MAKER
) -> Made:
    """Have a listening copy made of noise, by a real child."""
    with Writer(folder / "audio.w64") as writer:
        writer.write(np.random.default_rng(1).normal(0, 3000, round(seconds * RATE)).astype(np.int16))
        writer.finish()
    target = str(folder / "listening.mp3")
    request = ListeningRequest(source=None, audio=str(folder / "audio.w64"), target=target)
    return await maker.make(request, folder, children, still_ours)


async def test_it_is_made_and_durable(children: ChildPool, tmp_path: Path) -> None:
    """The answer says of what kind it is, and the file is there."""
    assert (await made(children, tmp_path)).media == "audio/mpeg"
    assert (tmp_path / "listening.mp3").stat().st_size > 10_000


async def test_a_full_disk_is_nobodys_failure(children: ChildPool, tmp_path: Path) -> None:
    """It is told apart from every other error of writing, and nothing is left."""
    (tmp_path / "listening.mp3.part").symlink_to("/dev/full")
    with pytest.raises(MeansAway, match="the disk is full"):
        await made(children, tmp_path, 60.0)
    assert names(tmp_path) == ["audio.w64"]


async def test_a_recognition_copy_that_is_none_is_told(children: ChildPool, tmp_path: Path) -> None:
    """In one sentence, with the fault."""
    (tmp_path / "audio.w64").write_bytes(b"no copy")
    request = ListeningRequest(
        source=None, audio=str(tmp_path / "audio.w64"), target=str(tmp_path / "listening.mp3")
    )
    with pytest.raises(ListeningFailed, match=r"could not be made: audio\.w64 is no Wave64 file"):
        await MAKER.make(request, tmp_path, children, still_ours)


async def test_a_child_that_dies_or_is_silent_is_told(
    children: ChildPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How it ended, or that it said nothing for so long."""
    with pytest.raises(ChildDied):
        await made(children, tmp_path, maker=ListeningMaker(memory_bytes=96 * 2**20, longest_seconds=60))
    monkeypatch.setattr(listening_maker, "_SILENT_SECONDS", 1.0)

    async def freeze() -> None:
        while True:
            for pid in ours():
                os.kill(pid, signal.SIGSTOP)
            await trio.sleep(0.01)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(freeze)
        with pytest.raises(ListeningFailed, match="said nothing for 1 s"):
            await made(children, tmp_path)
        nursery.cancel_scope.cancel()

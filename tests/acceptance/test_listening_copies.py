"""A listening copy of a real daemon: made off the critical path, and whole after any end of the process."""

import io
import os
import signal
import time
import wave
from pathlib import Path

import av
import httpx
import numpy as np
import pytest

from tests.acceptance.rig import Rig, eventually

RATE = 16_000
CHILD = b"stages.media.listening_child"
MINUTES = 10


def speechless(minutes: int) -> bytes:
    """Return noise as WAV: it takes a moment to encode."""
    rng = np.random.default_rng(5)
    minute = rng.normal(0, 2000, 60 * RATE).astype("<i2").tobytes()
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        for _ in range(minutes):
            out.writeframes(minute)
    return file.getvalue()


def makers(rig: Rig) -> list[int]:
    """Return the children that make listening copies for this rig."""
    return [
        pid
        for pid, (command, folder) in processes().items()
        if CHILD in command and rig.state in folder.parents
    ]


def processes() -> dict[int, tuple[bytes, Path]]:
    """Return what runs, and where it is at work."""
    found: dict[int, tuple[bytes, Path]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found[int(process.name)] = ((process / "cmdline").read_bytes(), (process / "cwd").readlink())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            found.pop(int(process.name), None)  # it has ended meanwhile
    return found


def test_s_r14_killed_in_the_middle_it_is_made_by_the_next_run(rig: Rig) -> None:
    """A kill -9 leaves no child and no half copy in anybody's sight; the record is not charged for it."""
    daemon = rig.start()
    token = rig.account()
    record_id = daemon.submit(token, speechless(MINUTES), filename="noise.wav")
    copies = rig.state / "store" / "records" / str(record_id) / "listening"
    (child,) = eventually(lambda: makers(rig), "a making")
    eventually(lambda: os.getpriority(os.PRIO_PROCESS, child) == 19, "it gives way")
    eventually(lambda: list(copies.glob("*/*.part")), "something is written")
    os.kill(child, signal.SIGSTOP)  # it will not finish before the kill
    daemon.kill()
    eventually(lambda: not makers(rig), "the child dies with it")
    assert rig.ask("SELECT path FROM listening_copies") == [{"path": None}]
    rig.ask("UPDATE listening_copies SET wake_at = clock_timestamp()")  # its lease of a minute has run out

    daemon = rig.start()
    with daemon.client(token) as client:
        path = f"/v1/records/{record_id}/audio?copy=listening"
        eventually(
            lambda: client.get(path, headers={"Range": "bytes=0-0"}).status_code == 206, "it is made", 120
        )
        copy = client.get(path).content
        assert client.get(f"/v1/records/{record_id}/peaks").status_code == httpx.codes.OK
    with av.open(io.BytesIO(copy), "r") as container:
        assert container.duration is not None
        assert container.duration / 1e6 == pytest.approx(MINUTES * 60, abs=1)
    assert len(list(copies.iterdir())) == 1, "the first making's folder is swept"
    row = rig.record(record_id)
    assert (row["stop_code"], rig.ask("SELECT tries FROM listening_copies")) == (None, [{"tries": 2}])
    daemon.stop()


def test_s_r14_a_stop_in_the_middle_costs_nothing(rig: Rig) -> None:
    """It ends within its time, and the next run begins anew at once."""
    daemon = rig.start()
    record_id = daemon.submit(rig.account(), speechless(MINUTES), filename="noise.wav")
    (child,) = eventually(lambda: makers(rig), "a making")
    os.kill(child, signal.SIGSTOP)  # it will not finish before the stop
    began = time.monotonic()
    assert daemon.stop() < 10, time.monotonic() - began
    assert not makers(rig)
    found = rig.ask("SELECT token, tries, wake_at <= clock_timestamp() AS due FROM listening_copies")
    assert found == [{"token": None, "tries": 0, "due": True}]
    assert rig.record(record_id)["stop_code"] is None

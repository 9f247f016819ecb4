"""Every kind of file through a real daemon: the stated truth, in one attempt, and nothing left over."""

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.acceptance.rig import Daemon, Rig, eventually
from tests.stages.media.fuzz.mutations import mutant
from tests.stages.media.shelf import HOPELESS, SOUND

# What holds for some beside what holds for all: the lengths that are declared, and what a person is told.
WARNED = {"wav_over_len.wav": ["cut_short"], "cut_half.m4a": ["cut_short"], "cut.wav": ["cut_short"]}
LENGTHS = {
    **SOUND,
    "cut_half.m4a": 20.0,
    "cut.wav": 20.0,
    "starts_at_5s.mkv": 9.0,
    "gap_of_3s.mka": 7.0,
    "two_tracks_first_silent.mp4": 4.0,
    "call.wav": 12.0,
    "chained.ogg": 120.0,
}
A_FEW = (
    "double.mp3",
    "cut.wav",
    "two_tracks_first_silent.mp4",
    "no_moov.m4a",
    "video_only.mp4",
    "concat_neighbour.wav",
)
MUTANTS = 300


@pytest.fixture
def site(dsn: str, make_rig: Callable[..., Rig]) -> Iterator[tuple[Rig, Daemon, str]]:
    """A daemon that converts and, without a model, goes no further; and the token of an account."""
    rig = make_rig(
        dsn,
        intake={"account_unfinished": 10_000},
        whisper={"model": "/nowhere"},
        convert={"slots": 2, "lease_seconds": 30.0},
        work={"failures_limit": 2},
    )
    daemon = rig.start()
    yield rig, daemon, rig.account()
    daemon.stop()


def ends(rig: Rig, records: list[UUID], seconds: float) -> dict[UUID, dict[str, Any]]:
    """Wait until each record is converted or stopped; return their rows."""

    def all_ended() -> bool:
        waiting = rig.ask(
            "SELECT count(*) AS number FROM records WHERE milestone = 'created' AND stop_code IS NULL"
        )
        return bool(waiting[0]["number"] == 0)

    eventually(all_ended, "every record is converted or stopped", seconds)
    return {row["id"]: row for row in rig.ask("SELECT * FROM records") if row["id"] in records}


def nothing_is_left(rig: Rig, daemon: Daemon, rows: dict[UUID, dict[str, Any]]) -> None:
    """No child lives, and the store has what the rows name and no more."""
    listed = subprocess.run(["ps", "-eo", "sid,args"], capture_output=True, text=True, check=True).stdout
    session = os.getsid(daemon.process.pid)
    mine = [line for line in listed.splitlines() if line.split(None, 1)[0] == str(session)]
    assert not [line for line in mine if "stages.media.child" in line]
    store = rig.state / "store"
    files = [path for path in (store / "records").rglob("*") if path.is_file()]
    there = {
        str(path.relative_to(store)) for path in files if "listening" not in path.parts
    }  # made beside us
    named = {name for row in rows.values() for name in (row["source_path"], row["audio_path"]) if name}
    assert there == named
    assert list((store / "incoming").iterdir()) == []


def stated_truths(site: tuple[Rig, Daemon, str], shelf: Path, names: list[str]) -> None:
    """Send each, and compare what its record says with what is true."""
    rig, daemon, token = site
    sent = {daemon.submit(token, (shelf / name).read_bytes(), filename=name): name for name in names}
    rows = ends(rig, list(sent), 300)
    for record_id, name in sent.items():
        row = rows[record_id]
        attempts = [event for event in rig.events(record_id) if event["kind"] == "claimed"]
        assert len(attempts) == 1, name
        if name in HOPELESS:
            assert (row["stop_code"], row["milestone"]) == (HOPELESS[name], "created"), name
        else:
            assert row["milestone"] == "converted", name
            assert row["decoded_seconds"] == pytest.approx(LENGTHS[name], abs=0.6), name
            assert row["audio_warnings"] == WARNED.get(name, []), name
    nothing_is_left(rig, daemon, rows)


def test_some_rows_of_the_media_table(site: tuple[Rig, Daemon, str], shelf: Path) -> None:
    """One of each kind: joined, cut, many tracks, hopeless in two ways, and an attack."""
    stated_truths(site, shelf, list(A_FEW))


@pytest.mark.deep
def test_every_row_of_the_media_table(site: tuple[Rig, Daemon, str], shelf: Path) -> None:
    """Each gives the stated truth at the first attempt."""
    stated_truths(site, shelf, [*LENGTHS, *(name for name in HOPELESS if name != "empty.mp3")])


@pytest.mark.deep
def test_s_r10_hundreds_of_damaged_recordings_through_the_daemon(
    site: tuple[Rig, Daemon, str], shelf: Path
) -> None:
    """The daemon lives, each record comes to an outcome of the closed list, no process or file is left."""
    rig, daemon, token = site
    whole = [path.read_bytes() for path in sorted(shelf.iterdir())]
    made = [mutant(seed, whole) for seed in range(30_000, 30_000 + 2 * MUTANTS)]
    records = [daemon.submit(token, data) for data in [data for data in made if data][:MUTANTS]]
    rows = ends(rig, records, 1800)
    assert len(rows) == MUTANTS
    outcomes = Counter(row["stop_code"] or row["milestone"] for row in rows.values())
    assert set(outcomes) <= {"converted", "not_media", "no_audio", "too_long"}, outcomes
    assert daemon.process.poll() is None
    nothing_is_left(rig, daemon, rows)
    print(dict(outcomes))  # noqa: T201 - the record of a deep run

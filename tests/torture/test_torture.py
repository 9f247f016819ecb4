"""Whatever is done to the machine: nothing is lost, doubled, overwritten or stranded."""

import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.model.history import Event, faults, standings
from tests.torture.daemon import SLICES
from tests.torture.faults import LEASE_SECONDS, Faults
from tests.torture.field import Battlefield, battlefield

DAEMONS = 3
RECORDS_AHEAD = 60  # are kept waiting or being worked on


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the server's user may pass through, with a short name."""
    with tempfile.TemporaryDirectory(prefix="rt-", ignore_cleanup_errors=True) as made:
        yield Path(made)


def test_a_minute_of_torture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The share of it that every run carries."""
    torture(folder, capsys, seconds=45.0, seed=int(os.environ.get("RUBEZH_SEED", "1")))


@pytest.mark.deep
def test_half_an_hour_of_torture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole of it; RUBEZH_TORTURE_SECONDS sets another length."""
    seconds = float(os.environ.get("RUBEZH_TORTURE_SECONDS", "1800"))
    torture(folder, capsys, seconds=seconds, seed=random.SystemRandom().randrange(10**6))


def torture(folder: Path, capsys: pytest.CaptureFixture[str], *, seconds: float, seed: int) -> None:
    """Draw faults for so long, then let everything come to its end, and prove that it is as it must be."""
    chance = random.Random(seed)  # noqa: S311 - a lot is drawn, no secret kept
    with battlefield(folder, DAEMONS) as field:
        drawn = Faults(field, chance)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            waiting = field.ask("SELECT count(*) AS number FROM records WHERE milestone <> 'done'")[0][
                "number"
            ]
            field.submit(max(RECORDS_AHEAD - waiting, 0) // 2 + 1)
            drawn.draw()
            field.revive()
        late = let_all_end(field)
        told = prove(field)
    done = ", ".join(f"{name} {number}" for name, number in drawn.counts.most_common())
    with capsys.disabled():
        sys.stdout.write(
            f"\n{seconds:g} s of torture, seed {seed}: {told}; all done {late:.1f} s after\n{done}\n"
        )


def let_all_end(field: Battlefield) -> float:
    """Lift what was stopped, and wait until everything is done; return how long that took."""
    field.revive()
    began = time.monotonic()
    while True:
        field.pardon()
        left = field.ask(
            "SELECT id, milestone, failures, lease_until, wake_at FROM records WHERE milestone <> 'done'"
        )
        if not left:
            return time.monotonic() - began
        allowed = 30 * LEASE_SECONDS + len(field.records) * 0.1
        assert time.monotonic() - began < allowed, f"{len(left)} records are stuck, as {left[:3]}"
        time.sleep(0.2)


def prove(field: Battlefield) -> str:
    """Prove from rows, events and segments that nothing was lost, doubled or overwritten."""
    rows = {row["id"]: row for row in field.ask("SELECT id, milestone, failures, filename FROM records")}
    assert set(field.records) == set(rows), "every accepted record is there, and no other"
    events = [
        Event(**row)
        for row in field.ask(
            "SELECT id, record_id, at, kind, milestone, token, settles, by, detail FROM events"
        )
    ]
    assert faults(events) == []
    standing = standings(events)
    assert {record_id: row["failures"] for record_id, row in rows.items()} == {
        record_id: standing[record_id].count for record_id in rows
    }
    said: dict[UUID, list[str]] = {record_id: [] for record_id in rows}
    for row in field.ask("SELECT record_id, text FROM segments ORDER BY record_id, slice, number"):
        said[row["record_id"]].append(row["text"])
    assert said == {record_id: [f"{record_id}:{slice_}" for slice_ in range(SLICES)] for record_id in rows}
    for text in field.ask("SELECT id, recognised_text FROM records"):
        assert text["recognised_text"] == " ".join(said[text["id"]])
    kinds = Counter(event.kind for event in events)
    spent = kinds["claimed"] - sum(event.settles for event in events)
    return f"{len(rows)} records, {kinds['claimed']} claims, {spent} of them without an end"

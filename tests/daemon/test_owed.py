"""Give-backs owed outlast the process, and are paid by the next one."""

import math
import os
import time
from pathlib import Path
from uuid import uuid4

import pytest
import trio
from attrs import evolve
from structlog.testing import capture_logs

from daemon.owed import Debts
from storage.database import Database
from tests.builders import a_queue
from tests.daemon.assembly import SETTINGS, a_house, a_line, hang
from tests.daemon.door import away, raising
from tests.waiting import until


def names(folder: Path) -> set[str]:
    """Return what lies in the folder."""
    return {file.name for file in folder.iterdir()}


def test_what_is_owed_is_read_by_the_next_start(tmp_path: Path) -> None:
    """One file a token; each is open until the moment the start gives it."""
    debts, token = Debts(tmp_path, now=0, patience=60), uuid4()
    debts.incur(token, math.inf)
    assert names(tmp_path) == set(), "in the memory alone until the end"
    with capture_logs() as entries:
        debts.write()
    assert [(entry["event"], entry["log_level"]) for entry in entries] == [("give_back.owed", "warning")]
    assert names(tmp_path) == {str(token)}
    assert Debts(tmp_path, now=0, patience=60).open_at(0) == [token]


def test_a_debt_is_dropped_once_it_is_not_found_after_its_moment(tmp_path: Path) -> None:
    """The lease has ended by itself then; the file goes too. Nothing is dropped that was not asked for."""
    debts, token = Debts(tmp_path, now=0, patience=60), uuid4()
    debts.incur(token, 10)
    debts.write()
    debts.not_found(token, 9.9)
    assert debts.open_at(0) == [token]
    debts.not_found(token, 10)
    debts.not_found(token, 10)
    assert debts.open_at(0) == []
    assert names(tmp_path) == set()


def test_a_debt_that_stays_is_told_and_written_once(tmp_path: Path) -> None:
    """Runs shorter than a lease neither tell it again nor make it younger; in time it is forgotten."""
    token = uuid4()
    first = Debts(tmp_path, now=0, patience=60)
    first.incur(token, math.inf)
    first.write()
    file = tmp_path / str(token)
    for age in (0, 20, 40):
        os.utime(file, (time.time() - age, time.time() - age))
        written = file.stat().st_mtime_ns
        run = Debts(tmp_path, now=1000, patience=60)
        run.not_found(token, 1001)
        with capture_logs() as entries:
            run.write()
        assert entries == []
        assert file.stat().st_mtime_ns == written
    os.utime(file, (time.time() - 61, time.time() - 61))
    last = Debts(tmp_path, now=1000, patience=60)
    assert last.open_at(5000) == [token], "it is asked for before it is forgotten"
    last.not_found(token, 1001)
    assert names(tmp_path) == set()


def test_an_outage_piles_nothing_up(tmp_path: Path) -> None:
    """What this run owes is dropped after its moment, asked for or not: its lease has ended by itself."""
    debts, token = Debts(tmp_path, now=0, patience=60), uuid4()
    debts.incur(token, 10)
    assert debts.open_at(10) == [token]
    assert debts.open_at(10.1) == []


def test_a_debt_that_is_settled_is_gone(tmp_path: Path) -> None:
    """From the memory and from the disk; a second time changes nothing."""
    debts, token = Debts(tmp_path, now=0, patience=60), uuid4()
    debts.incur(token, math.inf)
    debts.write()
    debts.settle(token)
    debts.settle(token)
    assert debts.open_at(0) == []
    assert names(tmp_path) == set()


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    """Only a token's own form is ours."""
    foreign = {"README", str(uuid4()).upper(), uuid4().hex, f"{uuid4()}.bak"}
    for name in foreign:
        (tmp_path / name).write_text("not ours")
    debts = Debts(tmp_path, now=0, patience=1)
    assert debts.open_at(0) == []
    debts.write()
    assert names(tmp_path) == foreign


def test_what_is_owed_is_on_the_disk_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File and folder are synced: the power may go with the process."""
    synced: list[str] = []
    real = os.fsync

    def note(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    debts, token = Debts(tmp_path, now=0, patience=60), uuid4()
    debts.incur(token, math.inf)
    debts.write()
    assert synced == [str(tmp_path / str(token)), str(tmp_path)]


class ProcessDiedError(BaseException):
    """Ends everything at once, as the end of the exit's time does."""


async def test_s_s4_a_give_back_without_a_database_is_done_at_the_next_start(
    database: Database, tmp_path: Path
) -> None:
    """A stop finds no database and its time runs out; at the next start the count is what it was."""
    queue = await a_queue(database)
    house = a_house(queue, tmp_path, a_line(play=hang))
    record, retaken = await house.record(failures=1), await house.record(failures=1)
    with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesGroup(ProcessDiedError, ProcessDiedError))):
        async with house.serving(workers=2):
            await until(lambda: house.lanes["convert"].busy == 2)
            house.door.always["*"] = away
            house.stop.ask("test")
            await until(lambda: house.door.calls["settle"] >= 2)
            house.keeper.owe()
            house.door.always["*"] = raising(ProcessDiedError())
            await trio.sleep_forever()
    assert (await queue.row(record))["failures"] == 2
    assert len(names(tmp_path / "owed")) == 2

    # One of the two has lapsed and gone to another process before we are back.
    await queue.lapse(retaken)
    taken_again = await queue.elsewhere().claim()
    assert taken_again.record_id == retaken

    again = a_house(queue, tmp_path)
    with capture_logs() as entries:
        await again.keeper.pay_back()
    assert [entry["event"] for entry in entries] == ["give_back.repaid"]
    row = await queue.row(record)
    assert (row["failures"], row["claim_token"], row["wake_at"]) == (1, None, None)
    assert (await queue.kinds(record))[-1] == "given_back"
    assert (await queue.claim()).record_id == record, "it is ready at once"
    row = await queue.row(retaken)
    assert (row["failures"], row["claim_token"]) == (3, taken_again.token), "left alone"
    assert len(names(tmp_path / "owed")) == 1, "a token that no record carries may still come"
    again.debts.not_found(again.debts.open_at(math.inf)[0], math.inf)
    assert names(tmp_path / "owed") == set(), "nothing is owed any more"


async def test_s_s4_a_give_back_that_was_given_up_is_owed_too(database: Database, tmp_path: Path) -> None:
    """The settle's patience ends before the time of the exit does: the orderly end writes it down."""
    queue = await a_queue(database)
    house = a_house(queue, tmp_path, a_line(play=hang), settings=evolve(SETTINGS, settle_seconds=0.2))
    record = await house.record(failures=1)
    with capture_logs() as entries:
        async with house.serving():
            await until(lambda: house.lanes["convert"].busy == 1)
            house.door.always["*"] = away
        house.keeper.owe()  # as the service does when its work has ended
    assert [entry["event"] for entry in entries if entry["log_level"] in ("warning", "error")] == [
        "database.away",
        "settle.given_up",
        "give_back.owed",
    ]
    assert house.marks() == {"lost": 1}
    await a_house(queue, tmp_path).keeper.pay_back()
    assert (await queue.row(record))["failures"] == 1
    assert names(tmp_path / "owed") == set()

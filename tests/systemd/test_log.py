"""The owner's log in a real journal: a record's whole story, stops explained, nothing held up or lost."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from daemon.remedies import STOP_REMEDIES
from storage.record import StopCode
from tests.systemd.installed import CHECKOUT, PROGRAM, VENV
from tests.systemd.private import PrivateSystemd
from tests.waiting import wait_until

SAMPLE = f"{CHECKOUT}/tests/samples/milestone.opus"
UNIT = "rubezh.service"
JOURNALD = "systemd-journald.service"
AS_THE_SERVICE = ("runuser", "-u", "rubezh", "--", "env", "XDG_CONFIG_HOME=/etc", "XDG_STATE_HOME=/var/lib")
TRANSCRIBE = (*AS_THE_SERVICE, PROGRAM, "transcribe", "--language", "en")
RUBBISH = 15  # recordings that are none: more entries than a stopped journald takes
FLOOD = 5_000

pytestmark = [pytest.mark.root, pytest.mark.model, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def service(machine: PrivateSystemd) -> Iterator[PrivateSystemd]:
    """The machine with the service started, and the journal's catalog brought up to date."""
    machine.run(
        "install",
        "-D",
        "-m",
        "644",
        f"{CHECKOUT}/systemd/rubezh.catalog",
        "/usr/lib/systemd/catalog/rubezh.catalog",
    )
    machine.run("journalctl", "--update-catalog")
    machine.run("systemctl", "start", UNIT)
    yield machine
    machine.run("systemctl", "stop", UNIT)
    machine.run("systemctl", "reset-failed", UNIT, check=False)


@contextmanager
def frozen_journal(machine: PrivateSystemd) -> Iterator[None]:
    """Have journald stand still."""
    machine.run("systemctl", "kill", "--signal=STOP", JOURNALD)
    try:
        yield
    finally:
        machine.run("systemctl", "kill", "--signal=CONT", JOURNALD)


def records(machine: PrivateSystemd, *which: str) -> list[dict[str, Any]]:
    """Return the records of the service, the newest first."""
    listed: list[dict[str, Any]] = json.loads(
        machine.run(*AS_THE_SERVICE, PROGRAM, "records", "list", "--json", *which)
    )
    return listed


def rubbish(machine: PrivateSystemd, number: int) -> list[str]:
    """Make files that are no recordings, each another."""
    machine.run(
        "sh", "-euc", f"for n in $(seq {number}); do echo $n of {number} > /var/lib/{number}-$n.mp3; done"
    )
    return [f"/var/lib/{number}-{n}.mp3" for n in range(1, number + 1)]


def test_s_o22_the_journal_tells_a_record_s_whole_story(service: PrivateSystemd) -> None:
    """By its id: whose it is, each stage it passed, each slice; and of a stop the reason and the remedy."""
    assert "milestone" in service.run(*TRANSCRIBE, SAMPLE).lower()
    (done,) = records(service)
    # What is made beside the line may come at any time.
    story = [
        entry
        for entry in service.journal(f"RUBEZH_RECORD={done['id']}")
        if entry["RUBEZH_EVENT"] != "listening.made"
    ]
    assert [entry["RUBEZH_EVENT"] for entry in story if entry["RUBEZH_EVENT"] != "record.reached"] == [
        "submission.accepted",
        "audio.converted",
        "slice.recognised",
    ]
    reached = [entry for entry in story if entry["RUBEZH_EVENT"] == "record.reached"]
    assert [
        (entry["RUBEZH_MILESTONE"], entry["RUBEZH_REACHED"], entry["RUBEZH_STAGE"]) for entry in reached
    ] == [
        ("created", "converted", "convert"),
        ("converted", "transcribe", "begin_recognition"),
        ("transcribe", "done", "advance_recognition"),
    ]
    assert len({entry["RUBEZH_OWNER"] for entry in story}) == 1
    assert all(entry["MESSAGE_ID"] for entry in story)

    service.run(*TRANSCRIBE, *rubbish(service, 1), check=False)
    (stopped,) = records(service, "--stopped")
    (entry,) = service.journal(f"RUBEZH_RECORD={stopped['id']}", "RUBEZH_EVENT=record.stopped")
    assert (entry["PRIORITY"], entry["RUBEZH_CODE"]) == ("3", "not_media")
    assert len(entry["RUBEZH_REASON"]) > 20
    assert entry["RUBEZH_REASON"] in entry["MESSAGE"]
    explained = service.run("journalctl", "-x", f"RUBEZH_RECORD={stopped['id']}")
    lines = " ".join(line.removeprefix("░░ ") for line in explained.splitlines())
    assert "Subject: Rubezh: record.stopped" in explained
    assert STOP_REMEDIES[StopCode.NOT_MEDIA] in lines
    assert f"journalctl RUBEZH_RECORD={stopped['id']}" in lines

    service.run(*AS_THE_SERVICE, PROGRAM, "records", "lift", stopped["id"])
    wait_until(
        lambda: len(service.journal(f"RUBEZH_RECORD={stopped['id']}", "RUBEZH_EVENT=record.stopped")) == 2, 30
    )
    lifted = service.journal(f"RUBEZH_RECORD={stopped['id']}", "RUBEZH_EVENT=record.lifted")
    assert [entry["RUBEZH_BY"] for entry in lifted] == ["rubezh"], "what a person did is in the story too"


def test_s_o23_a_frozen_journal_stops_nothing(service: PrivateSystemd) -> None:
    """Records are worked on meanwhile, and what was said of them is in the journal once it goes on."""
    with frozen_journal(service):
        service.run(*TRANSCRIBE, *rubbish(service, RUBBISH), check=False)
        assert len(records(service, "--stopped")) >= RUBBISH
        assert service.show(UNIT, "ActiveState", "NRestarts") == {"ActiveState": "active", "NRestarts": "0"}
    ids = {record["id"] for record in records(service, "--stopped")}

    def told() -> set[str]:
        return {entry["RUBEZH_RECORD"] for entry in service.journal("RUBEZH_EVENT=record.stopped")}

    wait_until(lambda: ids <= told(), 30)
    assert not service.journal("RUBEZH_EVENT=journal.dropped")


SAYING = f"""
import pathlib, structlog, trio
from daemon.journal import configure, keep_pushing
configure("journal", "info")
log = structlog.get_logger()
for number in range({FLOOD}):
    log.info("record.reached", number=number)
pathlib.Path("/run/said").touch()
trio.run(keep_pushing)
"""


def test_s_o23_a_flood_loses_nothing_untold(machine: PrivateSystemd) -> None:
    """More than a frozen journald takes, and more than is kept: the rest is counted, to the last entry."""
    command = [
        "systemd-run",
        "--quiet",
        "--unit=flood",
        "-p",
        "LogRateLimitIntervalSec=0",
        f"{VENV}/bin/python",
    ]
    with frozen_journal(machine):  # and all is said meanwhile
        machine.run(*command, "-c", SAYING)
        wait_until(lambda: machine.run("ls", "/run/said", check=False) != "", 60)
    ours = ("_SYSTEMD_UNIT=flood.service",)
    wait_until(lambda: bool(machine.journal(*ours, "RUBEZH_EVENT=journal.dropped")), 60)
    machine.run("systemctl", "stop", "flood")
    came = [int(entry["RUBEZH_NUMBER"]) for entry in machine.journal(*ours, "RUBEZH_EVENT=record.reached")]
    (loss,) = machine.journal(*ours, "RUBEZH_EVENT=journal.dropped")
    assert came == list(range(len(came)))
    assert len(came) + int(loss["RUBEZH_ENTRIES"]) == FLOOD

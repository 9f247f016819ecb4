"""What people do is in the log, whichever way they came."""

import socket
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from daemon.cli import service_log
from daemon.cli.service_log import tell_service_log
from daemon.deeds import tell_deed
from daemon.journald import JournalSocket
from storage import owner


@pytest.mark.parametrize(
    ("verb", "event"),
    [
        (owner.stop, "record.stopped"),
        (owner.lift, "record.lifted"),
        (owner.delete, "record.deleted"),
        (owner.undelete, "record.undeleted"),
    ],
)
def test_a_deed_is_told_with_who_did_it(verb: Callable[..., object], event: str) -> None:
    """By the record's id and its owner's, as everything else that befalls it."""
    record, account = uuid4(), uuid4()
    with capture_logs() as entries:
        tell_deed(verb, record, account, "anna")
    (entry,) = entries
    assert (entry["event"], entry["log_level"]) == (event, "info")
    assert (entry["record"], entry["owner"], entry["by"]) == (str(record), str(account), "anna")
    assert ("code" in entry) == (event == "record.stopped")


def test_a_command_tells_the_journal_of_a_service_under_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nobody where there is no such service, or no journal."""
    active, journal = tmp_path / "active", tmp_path / "journal"
    monkeypatch.setattr(service_log, "_ACTIVE", active)
    monkeypatch.setattr(service_log, "JOURNAL", journal)
    monkeypatch.setattr(service_log, "JournalSocket", lambda: JournalSocket(journal))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journald:
        journald.bind(str(journal))
        journald.settimeout(5)
        tell_service_log("record.lifted", record="r0")
        active.symlink_to("nowhere")
        tell_service_log("record.lifted", record="r1", by="anna", secret="hush")
        entry = journald.recv(65536).decode()
        assert "RUBEZH_RECORD=r1\n" in entry
        assert "RUBEZH_BY=anna\n" in entry
        assert "hush" not in entry
    journal.unlink()
    tell_service_log("record.lifted", record="r2")

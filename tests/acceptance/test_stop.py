"""The service's own stop: attempts are given back, uncounted and without a verdict, within the budget."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from uuid import UUID

import httpx
import pytest

from daemon.settings import load_settings
from daemon.stop import POSTGRES_SECONDS, exit_budget
from tests.acceptance.rig import Daemon, Rig, eventually
from tests.processes import CHECKOUT


def is_held(rig: Rig, record_id: UUID) -> Callable[[], bool]:
    """Tell whether the record is being worked on."""
    return lambda: rig.record(record_id)["claim_token"] is not None


def kinds(rig: Rig, record_id: UUID) -> list[str]:
    """Return what happened to a record, in order."""
    return [event["kind"] for event in rig.events(record_id)]


@pytest.mark.parametrize("failures", [0, 1])
def test_s_d3_stops_in_a_row_change_no_count(make_rig: Callable[..., Rig], dsn: str, failures: int) -> None:
    """One stop more than the limit, also from one failure below it, leaves the count and sets no flag."""
    rig = make_rig(dsn, work={"failures_limit": 2})
    first = rig.start(*rig.odd("endless"))
    record_id = first.submit(rig.account(), b"anything")
    first.stop()
    rig.ask("UPDATE records SET failures = %(before)s", before=failures)
    for _ in range(3):
        daemon = rig.start(*rig.odd("endless"))
        eventually(is_held(rig, record_id), "the record is held")
        assert rig.record(record_id)["failures"] == failures + 1
        daemon.stop()
        row = rig.record(record_id)
        assert (row["failures"], row["stop_code"], row["claim_token"]) == (failures, None, None)
        assert row["wake_at"] is None  # ready at once
        assert not [entry for entry in daemon.log if entry["level"] in {"warning", "error"}]
    assert kinds(rig, record_id).count("given_back") >= 3


def test_s_p1_what_ends_within_the_grace_is_settled(make_rig: Callable[..., Rig], dsn: str) -> None:
    """A stage that comes to its outcome during a stop has that outcome written."""
    rig = make_rig(dsn, work={"grace_seconds": 20.0})
    daemon = rig.start(*rig.odd("short"))
    record_id = daemon.submit(rig.account(), b"anything")
    eventually(is_held(rig, record_id), "the record is held")
    assert daemon.stop() < 10
    assert rig.record(record_id)["milestone"] == "converted"
    assert kinds(rig, record_id) == ["accepted", "claimed", "reached"]


def test_a_second_signal_ends_the_grace(make_rig: Callable[..., Rig], dsn: str) -> None:
    """Whoever cannot wait for the grace asks twice; the attempt is given back all the same."""
    rig = make_rig(dsn, work={"grace_seconds": 300.0})
    daemon = rig.start(*rig.odd("endless"))
    record_id = daemon.submit(rig.account(), b"anything")
    eventually(is_held(rig, record_id), "the record is held")
    daemon.signal(signal.SIGTERM)
    daemon.wait_for("service.stopping")
    assert daemon.stop() < 10
    assert kinds(rig, record_id) == ["accepted", "claimed", "given_back"]


def test_s_i6_polls_are_answered_and_submissions_refused_during_a_stop(
    make_rig: Callable[..., Rig], dsn: str
) -> None:
    """While the grace lasts, whoever asks is answered, and whoever sends is told to come again."""
    rig = make_rig(dsn, work={"grace_seconds": 3.0})
    daemon = rig.start(*rig.odd("endless"))
    token = rig.account()
    record_id = daemon.submit(token, b"anything")
    eventually(is_held(rig, record_id), "the record is held")
    daemon.signal(signal.SIGTERM)
    daemon.wait_for("service.stopping")
    assert daemon.poll(token, record_id)["milestone"] == "created"
    with daemon.client(token) as client:
        refused = client.post("/v1/records", params={"filename": "late.wav"}, content=b"late")
    assert refused.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert refused.json()["code"] == "stopping"
    assert int(refused.headers["Retry-After"]) > 0
    assert daemon.process.wait(20) == 0


def test_s_o1_the_exit_keeps_its_budget_while_postgresql_is_frozen(make_rig: Callable[..., Rig]) -> None:
    """A database that does not answer costs no more than the budget; the next start pays what is owed."""
    rig = make_rig(None, work={"exit_seconds": 3.0})
    daemon = rig.start(*rig.odd("endless"))
    record_id = daemon.submit(rig.account(), b"anything")
    eventually(is_held(rig, record_id), "the record is held")
    token = rig.record(record_id)["claim_token"]
    postgres = daemon.wait_for("postgres.started")["pid"]
    frozen = session_of(postgres)
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    daemon.signal(signal.SIGTERM)
    code = daemon.process.wait(60)
    took = time.monotonic() - began
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    assert took < exit_budget(load_settings(rig.file).work) - POSTGRES_SECONDS
    assert code == 1
    assert [file.name for file in (rig.state / "owed").iterdir()] == [str(token)]
    again = rig.start(*rig.odd("endless"))
    assert again.wait_for("give_back.repaid")["token"] == str(token)
    assert not list((rig.state / "owed").iterdir())
    history = eventually(lambda: kinds(rig, record_id)[3:] and kinds(rig, record_id), "the record goes on")
    assert history == ["accepted", "claimed", "given_back", "claimed"]
    assert rig.record(record_id)["failures"] == 1
    again.stop()


def test_s_o2_ctrl_c_gives_back_before_any_child_dies(make_rig: Callable[..., Rig]) -> None:
    """The terminal interrupts its foreground group; PostgreSQL and the stages' children are not in it."""
    rig = make_rig(None)
    terminal, ours = pty.openpty()
    command = [sys.executable, "-m", *rig.odd("endless")]
    log = rig.folder / "terminal.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command], cwd=CHECKOUT, stdin=ours, stdout=out, stderr=out
        )
    os.close(ours)
    try:
        daemon = Daemon(rig, process, log)
        daemon.wait_for("service.started")
        record_id = daemon.submit(rig.account(), b"anything")
        eventually(is_held(rig, record_id), "the record is held")
        os.write(terminal, b"\x03")
        assert process.wait(30) == 0, log.read_text()
    finally:
        os.close(terminal)
        process.kill()
    order = [entry["event"] for entry in daemon.log]
    assert "record.given_back" in order
    assert not [entry for entry in daemon.log if entry["level"] in {"warning", "error"}]
    again = rig.start(*rig.odd("endless"))
    assert kinds(rig, record_id)[:3] == ["accepted", "claimed", "given_back"]
    again.stop()


def session_of(leader: int) -> list[int]:
    """Return PostgreSQL and its backends, which have sessions of their own."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout.split()
    pairs = list(zip(map(int, listed[::2]), map(int, listed[1::2]), strict=True))
    return [leader, *(pid for pid, parent in pairs if parent == leader)]

"""What `rubezh serve` makes of signals: a reload, a closed terminal, a stop before it had started."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg

from storage.sql import query
from tests.acceptance.rig import Daemon, Rig, eventually
from tests.processes import CHECKOUT


def serving(rig: Rig, *, wait: bool = True) -> Daemon:
    """Start `rubezh serve` itself, with a log that a test can read."""
    words = ("serve", "--config", str(rig.file), "--log", "json", "--verbose")
    return rig.start("tests.acceptance.program", *words, wait=wait)


def put(file: Path, old: str, new: str) -> None:
    """Change a line of the settings."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_reload_is_answered_with_what_came_of_it(make_rig: Callable[..., Rig], dsn: str) -> None:
    """Adopted, refused for what needs a restart, refused for a fault; the service goes on."""
    rig = make_rig(dsn, work={"failures_limit": 3, "workers": 2})
    daemon = serving(rig)
    put(rig.file, "failures_limit = 3", "failures_limit = 4")
    done = rig.rubezh("reload")
    assert (done.returncode, done.stderr) == (0, "changed: work.failures_limit\n")
    assert rig.rubezh("reload").stderr == "nothing was changed\n"
    token = rig.account()
    daemon.submit(token, b"anything")
    rig.file.write_text(rig.file.read_text() + "[intake]\nlargest_bytes = 3\n")
    assert rig.rubezh("reload").stderr == "changed: intake.largest_bytes\n"
    with daemon.client(token) as client:
        assert client.post("/v1/records", params={"filename": "x.wav"}, content=b"four").status_code == 413
    put(rig.file, "workers = 2", "workers = 3")
    refused = rig.rubezh("reload")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("rubezh: work.workers cannot change while the service runs")
    put(rig.file, "workers = 3", "worker = 2")
    assert "work.worker: is no setting" in rig.rubezh("reload").stderr
    put(rig.file, "worker = 2", "workers = 2")
    daemon.signal(signal.SIGHUP)
    eventually(lambda: len(daemon.entries("settings.adopted")) == 4, "a hangup is a reload")
    assert len(daemon.entries("settings.refused")) == 1, (
        "a file with a fault is told to whoever asked, and sent nobody"
    )
    daemon.stop()
    gone = rig.rubezh("reload")
    assert (gone.returncode, gone.stdout) == (2, "")
    assert gone.stderr.startswith(f"rubezh: no service runs on {rig.state}")


def test_a_closed_terminal_is_a_stop(make_rig: Callable[..., Rig], dsn: str) -> None:
    """Whoever closes the window gives back what runs, and leaves no daemon behind."""
    rig = make_rig(dsn)
    terminal, ours = pty.openpty()
    words = ("serve", "--config", str(rig.file), "--log", "json", "--verbose")
    command = [sys.executable, "-m", "tests.acceptance.program", *words]
    log = rig.folder / "terminal.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *command], cwd=CHECKOUT, stdin=ours, stdout=out, stderr=out
        )
    os.close(ours)
    try:
        daemon = Daemon(rig, process, log)
        daemon.wait_for("service.started")
        os.close(terminal)
        assert daemon.wait_for("service.stopping")["why"] == "SIGHUP"
        daemon.wait_for("service.stopped")
        process.wait(30)
    finally:
        process.kill()


def test_a_stop_ends_a_start_that_is_not_over(make_rig: Callable[..., Rig], empty_dsn: str) -> None:
    """Nobody waits for a migration that is not wanted any more; nothing of it is kept."""
    rig = make_rig(empty_dsn)
    with psycopg.connect(empty_dsn) as holding:
        holding.execute(query("migration_lock"))
        daemon = serving(rig, wait=False)
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        eventually(lambda: rig.ask(waiting), "it waits for the migrations")
        assert daemon.stop() < 10
    assert not daemon.entries("service.started")
    assert rig.ask("SELECT to_regclass('records') AS made") == [{"made": None}]

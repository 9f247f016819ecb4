"""A real daemon under a test's hands: started, spoken to, signalled, and looked at from outside."""

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

import httpx
import psycopg
import trio
from psycopg.rows import dict_row

from storage.accounts import add_account, issue_token
from storage.database import open_database, open_loop
from tests.processes import CHECKOUT

DEADLINE_SECONDS = 60.0
LOOK_SECONDS = 0.02
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # made once: to read the world's certificates takes 20 ms


def eventually(happened: Callable[[], Any], what: str, seconds: float = DEADLINE_SECONDS) -> Any:
    """Wait until `happened` answers with something true, and return it; fail after a deadline."""
    deadline = time.monotonic() + seconds
    while True:
        if answer := happened():
            return answer
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(LOOK_SECONDS)


class Rig:
    """One state folder, one database and the settings of the daemons that run on them."""

    def __init__(self, folder: Path, dsn: str | None, **sections: Mapping[str, object]) -> None:
        """Write the settings file; `dsn` None leaves the daemon its embedded PostgreSQL."""
        self.folder = folder
        self.state = folder / "state"
        self.file = folder / "rubezh.toml"
        self._dsn = dsn
        tables = {name: dict(values) for name, values in sections.items()}
        if dsn is not None:
            tables.setdefault("database", {})["dsn"] = dsn
        lines = [f"state = {json.dumps(str(self.state))}"]
        for name, values in tables.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
        self.file.write_text("\n".join(lines) + "\n")
        self.daemons: list[Daemon] = []

    @property
    def dsn(self) -> str:
        """The database's address, also for the embedded one."""
        return self._dsn or f"host={self.state}/postgres/run user=rubezh dbname=rubezh"

    def start(self, *command: str, wait: bool = True) -> "Daemon":
        """Start a daemon: `rubezh serve`, or the given module with its arguments; `wait` until it serves."""
        words = command or ("tests.acceptance.serve", str(self.file))
        daemon = Daemon.started(self, [sys.executable, "-m", *words], len(self.daemons))
        self.daemons.append(daemon)
        if wait:
            daemon.wait_for("service.started")
        return daemon

    def odd(self, kind: str) -> tuple[str, ...]:
        """Return the words that start a daemon whose converting stage is odd."""
        return ("tests.acceptance.odd_service", str(self.file), kind)

    def rubezh(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `rubezh` with these settings."""
        command = [
            sys.executable,
            "-c",
            "from daemon.cli import main; main()",
            *words,
            "--config",
            str(self.file),
        ]
        return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False)

    def account(self, name: str = "anna") -> str:
        """Make an account, and return a token of its."""
        return trio.run(_account, self.dsn, name)

    def ask(self, statement: LiteralString, **values: object) -> list[dict[str, Any]]:
        """Run one statement of the test's own."""
        with psycopg.connect(self.dsn, autocommit=True, row_factory=dict_row) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def record(self, record_id: UUID) -> dict[str, Any]:
        """Return a record's row."""
        return self.ask("SELECT * FROM records WHERE id = %(id)s", id=record_id)[0]

    def events(self, record_id: UUID) -> list[dict[str, Any]]:
        """Return a record's history."""
        return self.ask("SELECT * FROM events WHERE record_id = %(id)s ORDER BY id", id=record_id)

    def end(self) -> None:
        """Leave no daemon behind."""
        for daemon in self.daemons:
            daemon.kill()


async def _account(dsn: str, name: str) -> str:
    async with (
        open_loop(),
        open_database(dsn, pool_size=2, call_seconds=20, statement_seconds=10, listen=True) as database,
    ):
        account = await add_account(database, name)
        _, secret = await issue_token(database, account.id, "a test", None)
        return secret


class Daemon:
    """One running daemon."""

    def __init__(self, rig: Rig, process: "subprocess.Popen[bytes]", log_file: Path) -> None:
        """Watch a process that writes its log into a file."""
        self._rig = rig
        self.process = process
        self.log_file = log_file

    @classmethod
    def started(cls, rig: Rig, command: list[str], number: int) -> "Daemon":
        """Start one in a session of its own."""
        log_file = rig.folder / f"daemon-{number}.log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=CHECKOUT,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return cls(rig, process, log_file)

    @property
    def log(self) -> list[dict[str, Any]]:
        """The entries written so far."""
        lines = self.log_file.read_text("utf-8", "replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def entries(self, event: str) -> list[dict[str, Any]]:
        """Return the entries of one kind."""
        return [entry for entry in self.log if entry["event"] == event]

    def wait_for(self, event: str, seconds: float = DEADLINE_SECONDS) -> dict[str, Any]:
        """Wait for an entry of that kind; fails at once when the daemon ends before it."""

        def seen() -> dict[str, Any] | None:
            code = self.process.poll()
            found = self.entries(event)
            assert found or code is None, f"ended with {code}: {self.log_file.read_text()[-3000:]}"
            return found[-1] if found else None

        entry: dict[str, Any] = eventually(seen, f"{event} in {self.log_file}", seconds)
        return entry

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the daemon's main process."""
        self.process.send_signal(number)

    def stop(self, seconds: float = 30.0) -> float:
        """Stop it in order; return how long that took. Its exit code must be 0."""
        began = time.monotonic()
        self.signal(signal.SIGTERM)
        assert self.process.wait(seconds) == 0, self.log_file.read_text()[-3000:]
        return time.monotonic() - began

    def kill(self) -> None:
        """Kill it if it lives, and wait until it is gone."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
            self.process.kill()
        self.process.wait(10)

    def client(self, token: str | None = None) -> httpx.Client:
        """Speak to its Unix socket."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = httpx.HTTPTransport(uds=str(self._rig.state / "rubezh.sock"), verify=NO_TLS)
        return httpx.Client(transport=transport, base_url="http://rubezh", headers=headers, timeout=30)

    def submit(self, token: str, content: bytes, **options: str) -> UUID:
        """Send a recording; return the id of its record."""
        with self.client(token) as client:
            answer = client.post("/v1/records", params={"filename": "talk.wav", **options}, content=content)
            assert answer.status_code == httpx.codes.CREATED, answer.text
            return UUID(answer.json()["id"])

    def poll(self, token: str, record_id: UUID) -> dict[str, Any]:
        """Ask for a record's readiness."""
        with self.client(token) as client:
            answer = client.get(f"/v1/records/{record_id}")
            assert answer.status_code == httpx.codes.OK, answer.text
            shown: dict[str, Any] = answer.json()
            return shown

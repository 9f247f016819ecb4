"""Where a torture takes place: a PostgreSQL of its own, several daemons, one store, and owners who submit."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString, TypeVar
from uuid import UUID

import psycopg
import trio
from psycopg.rows import dict_row

from storage.accounts import find_or_add_account
from storage.database import Database, open_database, open_loop
from storage.errors import Unavailable
from storage.ids import new_id
from storage.migrate import migrate
from storage.mounting import mount_store
from storage.owner import delete, lift, stop, undelete
from storage.submissions import Submission, accept
from tests.processes import CHECKOUT

T = TypeVar("T")

FAILURES_LIMIT = 6
SETTINGS = """
state = {state}
[database]
dsn = {dsn}
statement_seconds = 0.9
call_seconds = 3.0
[work]
workers = 4
poll_seconds = 0.3
renew_seconds = 0.4
failures_limit = {limit}
first_retry_seconds = 0.05
longest_retry_seconds = 0.2
grace_seconds = 0.2
exit_seconds = 4.0
[convert]
slots = 2
lease_seconds = 2.0
[whisper]
slots = 3
lease_seconds = 2.0
"""
VERBS = (stop, lift, lift, delete, undelete, undelete)


class Battlefield:
    """Made by `battlefield`; `records` are all that were ever accepted."""

    def __init__(self, folder: Path) -> None:
        """Start PostgreSQL, with the schema and one store in it."""
        self.folder = folder
        self.records: list[UUID] = []
        self.daemons: list[subprocess.Popen[bytes]] = []
        self._postgres: subprocess.Popen[str] | None = None
        self.dsn = self.start_postgres()

    def start_postgres(self) -> str:
        """Start the cluster; return its address, which is always the same."""
        log = (self.folder / "postgres.log").open("ab")
        command = [sys.executable, "-m", "tests.cluster", str(self.folder / "cluster")]
        self._postgres = subprocess.Popen(
            command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        log.close()
        assert self._postgres.stdout is not None
        return self._postgres.stdout.readline().strip()

    def restart_postgres(self, away_seconds: float) -> None:
        """End the cluster, let it be away for a while, and start it again."""
        assert self._postgres is not None
        self._postgres.communicate(timeout=120)
        time.sleep(away_seconds)
        self.start_postgres()

    def start_daemon(self, number: int) -> subprocess.Popen[bytes]:
        """Start the daemon of that number, with a state folder of its own and the store of all."""
        place = self.folder / f"daemon-{number}"
        state = place / "state"
        settings = place / "rubezh.toml"
        if not place.exists():
            place.mkdir()
            state.mkdir(mode=0o755)
            (state / "store").symlink_to(self.folder / "store")
            given = {"state": json.dumps(str(state)), "dsn": json.dumps(self.dsn), "limit": FAILURES_LIMIT}
            settings.write_text(SETTINGS.format(**given))
        with (place / "log").open("ab") as log:
            command = [sys.executable, "-m", "tests.torture.daemon", str(settings)]
            return subprocess.Popen(
                command,
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def replace(self, number: int, by: signal.Signals) -> None:
        """End one daemon by a signal, and start it again."""
        self.daemons[number].send_signal(by)
        self.daemons[number].wait(60)
        self.daemons[number] = self.start_daemon(number)

    def revive(self) -> None:
        """Start again whoever has ended by itself: a lost database is a reason to."""
        for number, daemon in enumerate(self.daemons):
            if daemon.poll() is not None:
                self.daemons[number] = self.start_daemon(number)

    def ask(self, statement: LiteralString) -> list[dict[str, Any]]:
        """Run one statement, again and again while the database is away."""
        deadline = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(
                    self.dsn,
                    autocommit=True,
                    row_factory=dict_row,
                    options="-c default_transaction_read_only=off",
                ) as connection:
                    cursor = connection.execute(statement)
                    return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def on_database(self, work: Callable[[Database], Awaitable[T]]) -> T:
        """Run something of ours on a database of its own, again and again while that is away."""

        async def inside() -> T:
            async with (
                open_loop(),
                open_database(
                    self.dsn, pool_size=2, call_seconds=5, statement_seconds=4, listen=True
                ) as opened,
            ):
                return await work(opened)

        deadline = time.monotonic() + 60
        while True:
            try:
                return trio.run(inside)
            except BaseExceptionGroup as error:
                if error.split(Unavailable)[1] is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def submit(self, number: int) -> None:
        """Accept so many more recordings, each of a few bytes."""

        async def inside(database: Database) -> None:
            owner = await find_or_add_account(database, "torture")
            store = await mount_store(database, self.folder / "store")
            for _ in range(number):
                record_id = new_id()
                async with store.receive(record_id) as receiving:
                    await receiving.write(b"sound")
                    received = await receiving.keep()
                submission = Submission(
                    id=record_id,
                    owner_id=owner.id,
                    filename=str(record_id),
                    title="",
                    description="",
                    topics=(),
                    asked_language=None,
                    channels="auto",
                    track=None,
                    hotwords="",
                    store_id=store.id,
                    source_path=received.path,
                    source_bytes=received.size,
                    source_sha256=received.sha256,
                )
                await accept(database, submission, lane="convert")
                self.records.append(record_id)

        self.on_database(inside)

    def meddle(self, chance: random.Random, times: int) -> None:
        """Let owners do something to records that are perhaps being worked on."""

        async def inside(database: Database) -> None:
            for _ in range(times):
                verb, record_id = chance.choice(VERBS), chance.choice(self.records[-200:])
                await verb(database, record_id, None, "an owner")

        self.on_database(inside)

    def pardon(self) -> None:
        """Let owners lift every stop and take back every deletion."""

        async def inside(database: Database) -> None:
            for row in self.ask("SELECT id FROM records WHERE deleted_at IS NOT NULL"):
                await undelete(database, row["id"], None, "the end")
            for row in self.ask("SELECT id FROM records WHERE stop_code IS NOT NULL"):
                await lift(database, row["id"], None, "the end")

        self.on_database(inside)

    def end(self) -> None:
        """Leave nobody behind."""
        for daemon in self.daemons:
            daemon.send_signal(signal.SIGCONT)
            daemon.kill()
            daemon.wait(30)
        if self._postgres is not None:
            self._postgres.communicate(timeout=120)


@contextmanager
def battlefield(folder: Path, daemons: int) -> Iterator[Battlefield]:
    """Have PostgreSQL, a store and so many daemons; leave nothing running."""
    folder.chmod(0o755)
    (folder / "store").mkdir(mode=0o700)
    field = Battlefield(folder)
    try:
        field.on_database(migrate)
        field.submit(1)
        field.daemons = [field.start_daemon(number) for number in range(daemons)]
        yield field
    finally:
        field.end()

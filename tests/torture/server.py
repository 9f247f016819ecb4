"""The PostgreSQL under torture, and a word with it that waits until it can be had."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg.rows import dict_row

from tests.processes import CHECKOUT

PATIENCE = 60.0


class Server:
    """A cluster of its own, which does not wait for the disk: nobody cuts the power here."""

    def __init__(self, folder: Path) -> None:
        """Start it for the first time."""
        self._folder = folder
        self._process = self._started()
        for setting in ("fsync = off", "full_page_writes = off", "max_wal_size = '2GB'"):
            self.ask(f"ALTER SYSTEM SET {setting}")
        self.ask("SELECT pg_reload_conf()")

    def _started(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.cluster", str(self._folder)]
        with (self._folder.parent / "cluster.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert process.stdout is not None
        self.dsn = process.stdout.readline().strip()
        assert self.dsn, "PostgreSQL did not start; see cluster.log"
        return process

    def restart(self, *, orderly: bool) -> None:
        """Have it go down and come up again."""
        if not orderly:
            self._process.kill()
        self.end()
        self.start()

    def start(self) -> None:
        """Have it come up again."""
        self._process = self._started()

    def end(self) -> None:
        """Have it go down."""
        self._process.communicate(timeout=PATIENCE)

    def connected(self) -> "psycopg.Connection[dict[str, Any]]":
        """Connect as one who may write, whatever the server's default."""
        options = "-c default_transaction_read_only=off"
        return psycopg.connect(self.dsn, autocommit=True, row_factory=dict_row, options=options)

    def ask(self, statement: LiteralString, **values: object) -> list[dict[str, Any]]:
        """Run a statement that may be said again, as soon as it is answered."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with self.connected() as connection:
                    cursor = connection.execute(statement, values or None)
                    return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def crash(self) -> None:
        """Kill one of its processes: it throws everybody out and recovers by itself."""
        rows = self.ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' LIMIT 1")
        for row in rows:
            os.kill(row["pid"], signal.SIGKILL)

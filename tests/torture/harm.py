"""What is done to the daemons and to their PostgreSQL, one thing after another, as the dice have it."""

import errno
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.torture.fleet import Fleet, Seat
from tests.torture.server import Server
from tests.torture.terms import LEASE

Deed = Callable[[], None]


class Harm:
    """The menu, with how often each dish is served; one seed chooses the same order again."""

    def __init__(
        self, fleet: Fleet, server: Server, store: Path, dice: random.Random, counts: Counter[str]
    ) -> None:
        """Have a menu; `store` must be a disk of its own for it to be filled."""
        self._fleet, self._server, self._store, self._dice = fleet, server, store, dice
        self.counts = counts
        self._menu: dict[str, tuple[float, Deed]] = {
            "kill -9": (34, lambda: fleet.kill(self._seat())),
            "zombies": (12, lambda: fleet.suspend(self._seat(), LEASE + dice.uniform(0.2, 1.5))),
            "orderly stops": (6, lambda: fleet.stop(self._seat())),
            "all backends terminated": (5, self._terminate_all),
            "LISTEN terminated": (5, self._silence),
            "PostgreSQL crashed": (3, server.crash),
            "PostgreSQL restarted": (1, lambda: server.restart(orderly=True)),
            "PostgreSQL killed": (1, lambda: server.restart(orderly=False)),
            "statements timed out": (4, self._lock),
            "read-only for a while": (3, self._forbid_writes),
        }
        if os.path.ismount(store):
            self._menu["disk full for a while"] = (3, self._fill)

    def one(self) -> None:
        """Do one thing."""
        names = list(self._menu)
        [name] = self._dice.choices(names, [self._menu[name][0] for name in names])
        try:
            self._menu[name][1]()
        except (psycopg.OperationalError, ProcessLookupError):  # the server is on its way down or up
            self.counts["harm that met another"] += 1
            return
        if name not in ("kill -9", "zombies", "orderly stops"):  # the fleet counts what it really did
            self.counts[name] += 1

    def _seat(self) -> Seat:
        return self._dice.choice(self._fleet.seats)

    def _terminate_all(self) -> None:
        self._server.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rubezh'"
        )

    def _silence(self) -> None:
        self._server.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'rubezh' AND query LIKE 'LISTEN%'"
        )

    def _lock(self) -> None:
        with self._server.connected() as connection, connection.transaction():
            connection.execute("LOCK TABLE records IN ACCESS EXCLUSIVE MODE")
            time.sleep(1.2)

    def _forbid_writes(self) -> None:
        self._server.ask("ALTER SYSTEM SET default_transaction_read_only = on")
        self._server.ask("SELECT pg_reload_conf()")
        time.sleep(1.2)
        self.allow_writes()

    def allow_writes(self) -> None:
        """End a ban on writing."""
        self._server.ask("ALTER SYSTEM RESET default_transaction_read_only")
        self._server.ask("SELECT pg_reload_conf()")

    def _fill(self) -> None:
        ballast = self._store / "ballast"
        until = time.monotonic() + 1.2
        with ballast.open("wb") as file:
            while time.monotonic() < until:  # whatever becomes free is taken, too
                disk = os.statvfs(self._store)
                try:
                    os.posix_fallocate(file.fileno(), 0, file.tell() + max(disk.f_bavail * disk.f_frsize, 1))
                    file.seek(0, os.SEEK_END)
                except OSError as error:
                    if error.errno != errno.ENOSPC:  # the daemons were quicker
                        raise
                time.sleep(0.02)
        ballast.unlink()

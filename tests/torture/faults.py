"""The faults that a torture draws from; each ends, and leaves only its victims changed."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import LiteralString

import psycopg
from attrs import define, field

from tests.torture.field import Battlefield

LEASE_SECONDS = 2.0

TERMINATE_ALL: LiteralString = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
TERMINATE_ONE: LiteralString = TERMINATE_ALL + " ORDER BY random() LIMIT 1"
TERMINATE_LISTENERS: LiteralString = TERMINATE_ALL + " AND query LIKE 'LISTEN%%'"


@define
class Faults:
    """Draws one fault after another; `counts` says how often each was done."""

    battlefield: Battlefield
    chance: random.Random
    counts: Counter[str] = field(factory=Counter)

    def draw(self) -> None:
        """Do one fault."""
        kinds: list[tuple[Callable[[], None], int]] = [
            (self.kill, 30),
            (self.freeze, 10),
            (self.stop, 8),
            (self.terminate_one, 12),
            (self.terminate_listeners, 6),
            (self.terminate_all, 3),
            (self.lock_out, 3),
            (self.forbid_writing, 3),
            (self.restart_postgres, 2),
            (self.meddle, 20),
        ]
        fault = self.chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        fault()
        self.counts[fault.__name__] += 1

    def kill(self) -> None:
        """Kill -9 one daemon, and start another in its place."""
        self.battlefield.replace(self.chance.randrange(len(self.battlefield.daemons)), signal.SIGKILL)

    def stop(self) -> None:
        """Stop one daemon in order, and start another in its place."""
        self.battlefield.replace(self.chance.randrange(len(self.battlefield.daemons)), signal.SIGTERM)

    def freeze(self) -> None:
        """Freeze one daemon past its leases: what it holds is claimed by others, and then it comes back."""
        pid = self.chance.choice(self.battlefield.daemons).pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(LEASE_SECONDS * 1.5)
        os.kill(pid, signal.SIGCONT)

    def terminate_one(self) -> None:
        """Let PostgreSQL end one session, whoever's it is."""
        self.battlefield.ask(TERMINATE_ONE)

    def terminate_listeners(self) -> None:
        """Let PostgreSQL end the sessions that listen, and no others."""
        self.battlefield.ask(TERMINATE_LISTENERS)

    def terminate_all(self) -> None:
        """Let PostgreSQL end every session."""
        self.battlefield.ask(TERMINATE_ALL)

    def lock_out(self) -> None:
        """Hold the table longer than a statement may take: every call of a daemon runs into its limit."""
        with psycopg.connect(self.battlefield.dsn) as connection:
            connection.execute("LOCK TABLE records IN ACCESS EXCLUSIVE MODE")
            time.sleep(1.5)

    def forbid_writing(self) -> None:
        """Make the database read-only for a while."""
        self.battlefield.ask("ALTER SYSTEM SET default_transaction_read_only = on")
        self.battlefield.ask("SELECT pg_reload_conf()")
        time.sleep(1.5)
        self.battlefield.ask("ALTER SYSTEM RESET default_transaction_read_only")
        self.battlefield.ask("SELECT pg_reload_conf()")

    def restart_postgres(self) -> None:
        """End PostgreSQL, and start it again a moment later."""
        self.battlefield.restart_postgres(away_seconds=self.chance.random() * 2)

    def meddle(self) -> None:
        """Let owners stop, lift, delete and undelete some records."""
        self.battlefield.meddle(self.chance, times=10)

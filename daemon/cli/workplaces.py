"""Where a job's work is done: in a service of its own, or beside the process that holds the state folder."""

import fcntl
import os
import signal
from functools import partial

import trio
from attrs import evolve

from daemon.cli.job import Job
from daemon.cli.opening import database_at
from daemon.cli.sending import Site
from daemon.line import build_line
from daemon.parts import Ground
from daemon.service import serve
from daemon.settings import Settings
from stages.stage import lane_after
from storage.database import open_loop
from storage.embedded import running_dsn
from storage.errors import DatabaseUnavailable, StateFolderInUse
from storage.folder import StateFolder
from storage.mounting import mount_store
from storage.record import Milestone

_LOOK_SECONDS = 0.5
_SUCCESSION_SECONDS = 2.0  # for a service that was ended to be started again before we take its place


async def run_somewhere(settings: Settings, job: Job) -> None:
    """Run `job` until it is done or a signal ends it.

    While another process holds the state folder, its workers do the work; once it has left, ours do.
    """
    folder = StateFolder(settings.state)
    folder.prepare()
    while not job.is_done:
        if is_held(folder):
            if await _beside(settings, folder, job):
                return
            continue
        try:
            await _in_own_service(settings, job)
        except StateFolderInUse:
            if not is_held(folder):
                raise
            continue  # somebody was quicker
        return


def is_held(folder: StateFolder) -> bool:
    """Tell whether a process owns the state folder."""
    descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


async def _in_own_service(settings: Settings, job: Job) -> None:
    # There is one user, and they wait at the terminal: nobody gains by a grace.
    alone = evolve(settings, work=evolve(settings.work, grace_seconds=0.0))
    await serve(alone, doors=False, visitor=partial(_visit, job=job))


async def _visit(ground: Ground, job: Job) -> None:
    for stage in ground.line:
        await stage.check_means()
    site = Site(database=ground.database, store=ground.store, lane=ground.first_lane)
    while True:
        try:
            await job.run(site)
            return
        except DatabaseUnavailable:  # the service has told of it, and works on when it is over
            if trio.current_time() - job.looked_at > ground.settings.work.settle_seconds:
                raise
        await trio.sleep(_LOOK_SECONDS)


async def _beside(settings: Settings, folder: StateFolder, job: Job) -> bool:
    """Let the holder's workers do the work; True when the user has had enough."""
    async with open_loop(), trio.open_nursery() as nursery:
        signalled = trio.Event()
        await nursery.start(_hear_signals, signalled, nursery.cancel_scope)
        nursery.start_soon(_watch_holder, folder, nursery.cancel_scope)
        try:
            await _visit_holder(settings, folder, job)
        except DatabaseUnavailable:
            if settings.database.dsn:
                raise
            await trio.sleep(_LOOK_SECONDS)  # the holder is ending its cluster, and then itself
        nursery.cancel_scope.cancel(reason="there is nothing more to watch")
    if not signalled.is_set() and not job.is_done:
        await _await_successor(folder)
    return signalled.is_set()


async def _visit_holder(settings: Settings, folder: StateFolder, job: Job) -> None:
    dsn = settings.database.dsn or await running_dsn(folder)
    if dsn is None:  # the holder is only just starting, or ending
        await trio.sleep(_LOOK_SECONDS)
        return
    line = build_line(settings, folder)
    async with database_at(dsn, settings) as database:
        store = await mount_store(database, folder.store)
        await job.run(Site(database=database, store=store, lane=str(lane_after(line, Milestone.CREATED))))


async def _watch_holder(folder: StateFolder, visit: trio.CancelScope) -> None:
    while is_held(folder):  # noqa: ASYNC110 - another process sets no event of ours
        await trio.sleep(_LOOK_SECONDS)
    visit.cancel(reason="the holder has left")


async def _hear_signals(
    signalled: trio.Event,
    visit: trio.CancelScope,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            signalled.set()
            visit.cancel(reason="the user has had enough")


async def _await_successor(folder: StateFolder) -> None:
    with trio.move_on_after(_SUCCESSION_SECONDS):
        while not is_held(folder):  # noqa: ASYNC110 - another process sets no event of ours
            await trio.sleep(_LOOK_SECONDS)

"""THE MAP: the whole service, from the folder it owns to the last worker.

::

    serve
    └─ the state folder's lock
       └─ asyncio's loop, for the database's driver
          └─ signals · the clock of the exit
             └─ PostgreSQL: our own, or the one that the DSN names
                └─ pool, schema, store
                   └─ children: warm recognisers, decoders
                      └─ support ring: doors · keeper · bell · probes · watchdog · reload · listening copies
                         └─ work ring: workers

A stop cancels the work ring alone: while attempts are given back, leases are renewed, systemd is fed and
polls are answered. A crash of a task of ours takes the service down; the service manager starts it again.
"""

import math
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import structlog
import trio

from daemon import systemd
from daemon.children import open_children
from daemon.intake import ALIAS, Inside, Polls, adopt, intake_app
from daemon.journal import keep_pushing
from daemon.line import build_line, milestone_limit, whisper_threads
from daemon.metrics import Metrics
from daemon.panel import attach
from daemon.parts import Ground, Parts, parts_of
from daemon.queue_gauges import queue_exposition
from daemon.reloading import Reloading
from daemon.settings import Settings
from daemon.status import tell_status
from daemon.stop import Stop
from daemon.watching import Watch
from daemon.web import serve_web
from stages.stage import Stage
from storage.daemons import take_leave
from storage.database import Database, open_database, open_loop
from storage.embedded import embedded_postgres
from storage.errors import DatabaseUnavailable
from storage.folder import StateFolder
from storage.leftovers import sweep_leftovers
from storage.migrate import migrate
from storage.mounting import mount_store
from storage.tidying import tidy

log = structlog.get_logger()

Visitor = Callable[[Ground], Awaitable[None]]
"""Somebody in this process who uses the service; when they leave, it stops."""


SWEEP_EVERY_SECONDS = 86_400.0
TIDY_EVERY_SECONDS = 600.0
FAREWELL_SECONDS = 1.0


async def serve(
    settings: Settings,
    *,
    doors: bool = True,
    visitor: Visitor | None = None,
    reread: Callable[[], Settings] | None = None,
    line_of: Callable[[Settings, StateFolder], tuple[Stage, ...]] = build_line,
) -> None:
    """Run the service until a stop is asked for: by a signal, or by the end of `visitor`.

    `reread` has the settings as they are by then, at each SIGHUP; without it that asks for the stop as well.
    `line_of` makes the stages that records pass.

    Raises Refused or Unavailable when it cannot start, and whatever crashed it; what rises through a ring
    comes in a group.
    """
    folder, stop = StateFolder(settings.state), Stop()
    folder.prepare()
    with folder.locked():
        line = line_of(settings, folder)
        metrics = Metrics((stage.name for stage in line), {stage.lane for stage in line})
        async with open_loop(), trio.open_nursery() as outermost:
            await outermost.start(stop.hear_signals, *(() if reread else (signal.SIGHUP,)))
            outermost.start_soon(keep_pushing)
            starting: trio.CancelScope = await outermost.start(systemd.ask_for_patience)
            outermost.start_soon(_give_up_start, stop, starting, outermost.cancel_scope)
            async with _postgres(settings, folder) as dsn, trio.open_nursery() as exit_clock:
                async with _database(settings, dsn, metrics) as database:
                    store = await mount_store(database, folder.store)
                    ground = Ground(
                        settings=settings,
                        folder=folder,
                        line=line,
                        database=database,
                        store=store,
                        stop=stop,
                        metrics=metrics,
                    )
                    await _run_rings(ground, starting, exit_clock, visitor, reread, doors=doors)
                exit_clock.cancel_scope.cancel(reason="the database is closed")
            outermost.cancel_scope.cancel(reason="the service has ended")
    log.info("service.stopped")


async def _run_rings(
    ground: Ground,
    starting: trio.CancelScope,
    exit_clock: trio.Nursery,
    visitor: Visitor | None,
    reread: Callable[[], Settings] | None,
    *,
    doors: bool,
) -> None:
    settings, stop = ground.settings, ground.stop
    threads = whisper_threads(settings)
    async with open_children(cpu_threads=threads, idle_seconds=settings.whisper.idle_seconds) as children:
        parts = parts_of(ground, children)
        exit_clock.start_soon(stop.end_hard, settings.work, parts.keeper.owe)
        async with trio.open_nursery() as support:
            await _start_support(support, ground, parts, doors=doors)
            async with trio.open_nursery() as work:
                # What cancels the inner ring must outlive it, so it runs in the outer one.
                grace = settings.work.grace_seconds
                support.start_soon(stop.end_work, work.cancel_scope, grace)  # noqa: ASYNC111 - on purpose
                for number in range(1, settings.work.workers + 1):
                    work.start_soon(parts.workers.work, f"worker {number}", name=f"worker {number}")
                if visitor is not None:
                    support.start_soon(_receive, visitor, ground)
                log.info("service.started", workers=settings.work.workers, state=str(ground.folder.path))
                if reread is not None:
                    support.start_soon(_reloading(ground, parts, reread).hear)
                systemd.ready(parts.sentence())
                support.start_soon(tell_status, parts.sentence, stop)
                starting.cancel(reason="the service has started")
            parts.keeper.owe()
            support.cancel_scope.cancel(reason="the work has ended")
        await _say_farewell(ground, parts.run)


async def _give_up_start(stop: Stop, starting: trio.CancelScope, everything: trio.CancelScope) -> None:
    """Let a stop end a start that is not over: whatever it was at is as safe as under a kill."""
    await stop.wait()
    if not starting.cancel_called:
        everything.cancel(reason="a stop was asked for before the service had started")


def _reloading(ground: Ground, parts: Parts, reread: Callable[[], Settings]) -> Reloading:
    return Reloading(
        folder=ground.folder.path,
        running=ground.settings,
        read=reread,
        adopt=parts.adopt,
        status=parts.sentence,
    )


async def _say_farewell(ground: Ground, run: str) -> None:
    """Have nobody wonder why this run gives no more signs of life; the exit does not wait long for it."""
    try:
        with trio.fail_after(FAREWELL_SECONDS):
            await take_leave(ground.database, run)
    except (DatabaseUnavailable, trio.TooSlowError) as error:
        log.debug("farewell.unheard", reason=str(error) or "no answer in time")


async def _start_support(support: trio.Nursery, ground: Ground, parts: Parts, *, doors: bool) -> None:
    settings = ground.settings
    await support.start(parts.lanes.probe, ground.line)
    support.start_soon(ground.stop.notice_crash, settings.work.exit_seconds)
    support.start_soon(parts.keeper.keep, settings.work.renew_seconds)
    support.start_soon(parts.bell.listen, ground.database)
    support.start_soon(_ring_at_the_stop, ground.stop, parts)
    support.start_soon(systemd.feed_watchdog, parts.beats)
    support.start_soon(_sweep, ground)
    if doors:
        support.start_soon(parts.listening.make_all)
        polls = Polls(ground.database)
        support.start_soon(polls.changes.listen, ground.database)
        support.start_soon(_let_go_at_the_stop, ground.stop, polls)
        app = intake_app(
            database=ground.database,
            store=ground.store,
            accept_lane=ground.first_lane,
            settings=settings.intake,
            stopping=lambda: ground.stop.asked,
            polls=polls,
            inside=Inside(
                silent=parts.beats.silent,
                closed_lanes=parts.lanes.closed,
                exposition=partial(_exposition, ground),
                milestone_limit=partial(milestone_limit, ground.line),
                models=(ALIAS, Path(settings.whisper.model).name),
            ),
        )
        attach(app, settings.panel)
        parts.adopters.append(lambda changed: adopt(app, changed.intake))
        door = Path(settings.intake.socket) if settings.intake.socket else ground.folder.socket
        inherited = [each.socket for each in systemd.inherited_sockets()]
        serving = partial(serve_web, app, socket=door, listen=settings.intake.listen, inherited=inherited)
        at = await support.start(serving)
        log.info("doors.opened", at=", ".join(at))
        if settings.watch.folder:
            support.start_soon(Watch(doors=app.state.doors, settings=settings.watch).keep)


async def _receive(visitor: Visitor, ground: Ground) -> None:
    try:
        await visitor(ground)
    except Exception:
        ground.stop.ask("whoever waited for it failed")
        raise
    # Not where the visitor is cancelled: a crash is no stop, and gives nothing back.
    ground.stop.ask("nobody is left to wait for it")


async def _ring_at_the_stop(stop: Stop, parts: Parts) -> None:
    """Let the idle workers see at once that there is nothing more to wait for."""
    await stop.wait()
    parts.bell.ring()


async def _let_go_at_the_stop(stop: Stop, polls: Polls) -> None:
    """Have nobody wait any more for a change that this process will not see."""
    await stop.wait()
    polls.changes.let_go()


async def _exposition(ground: Ground) -> bytes:
    lanes = {stage.takes: stage.lane for stage in ground.line}
    return ground.metrics.exposition() + await queue_exposition(ground.database, lanes)


async def _sweep(ground: Ground) -> None:
    """Let go of what is over every few minutes, and look through the whole store once a day."""
    sweep_at = -math.inf
    while True:
        try:
            await tidy(ground.database, ground.store)
            if trio.current_time() >= sweep_at:
                await sweep_leftovers(ground.database, ground.store)
                sweep_at = trio.current_time() + SWEEP_EVERY_SECONDS
        except DatabaseUnavailable as error:
            log.warning("leftovers.unswept", reason=str(error))
        await trio.sleep(TIDY_EVERY_SECONDS)


@asynccontextmanager
async def _postgres(settings: Settings, folder: StateFolder) -> AsyncIterator[str]:
    """Have a PostgreSQL to connect to: the one that is named, or our own, whose death is ours too."""
    if settings.database.dsn:
        yield settings.database.dsn
        return
    systemd.status("starting PostgreSQL")
    async with embedded_postgres(folder) as cluster, trio.open_nursery() as nursery:
        nursery.start_soon(cluster.failed)
        yield cluster.dsn
        nursery.cancel_scope.cancel(reason="PostgreSQL is no longer needed")


@asynccontextmanager
async def _database(settings: Settings, dsn: str, metrics: Metrics) -> AsyncIterator[Database]:
    """Have the database open and its schema as this program knows it."""
    asked = settings.database
    systemd.status("opening the database, and bringing its schema up to date")
    async with open_database(
        dsn,
        pool_size=asked.pool_size,
        call_seconds=asked.call_seconds,
        statement_seconds=asked.statement_seconds,
        listen=asked.listen,
        call_ended=metrics.database_call,
    ) as database:
        await migrate(database)
        yield database

"""The parts of a running service, made from its ground and wired to each other; nothing here runs yet."""

import os
import socket
from collections.abc import Callable
from functools import partial
from uuid import uuid4

import trio
from attrs import field, frozen

from daemon.attempt import Attempts
from daemon.bell import Bell
from daemon.keeper import Keeper
from daemon.lanes import Lanes
from daemon.line import listening_maker, slots_of
from daemon.listening_copies import ListeningCopies
from daemon.metrics import Metrics
from daemon.outage import Outage
from daemon.owed import Debts
from daemon.settings import Settings
from daemon.status import sentence_of
from daemon.stop import Stop
from daemon.systemd import Beats
from daemon.worker import Workers
from daemon.workplace import Workplace
from stages.stage import Children, Stage, lane_after
from storage.audio import Store
from storage.claims import Claims
from storage.daemons import Sign
from storage.database import Database
from storage.folder import StateFolder
from storage.record import Milestone

# Between two promises a part asks the database so often at most, and may wait for its turn on a busy machine.
MOST_CALLS_TO_A_BEAT = 4
BEAT_MARGIN_SECONDS = 30.0


@frozen(kw_only=True)
class Ground:
    """What everything stands on; `stop` says whether a stop was asked for."""

    settings: Settings
    folder: StateFolder
    line: tuple[Stage, ...]
    database: Database
    store: Store
    stop: Stop
    metrics: Metrics

    @property
    def first_lane(self) -> str:
        """Where a submission waits for its first stage."""
        return str(lane_after(self.line, Milestone.CREATED))


@frozen(kw_only=True)
class Parts:
    """What runs in the rings."""

    beats: Beats
    bell: Bell
    keeper: Keeper
    lanes: Lanes
    workers: Workers
    listening: ListeningCopies
    metrics: Metrics
    run: str
    sentence: Callable[[], str]
    adopters: list[Callable[[Settings], None]] = field(factory=list)
    """What else goes by the settings of the moment."""

    def adopt(self, settings: Settings) -> None:
        """Go on with these settings, as far as they may change while the service runs."""
        work = settings.work
        self.workers.settings = self.workers.attempts.settings = work
        self.workers.claims.failures_limit = work.failures_limit
        for also in self.adopters:
            also(settings)


def parts_of(ground: Ground, children: Children) -> Parts:
    """Make the parts of one service."""
    slots = slots_of(ground.settings, ground.line)
    metrics = ground.metrics
    metrics.slots(slots)
    calls = MOST_CALLS_TO_A_BEAT * ground.settings.database.call_seconds
    beats = Beats(margin_seconds=BEAT_MARGIN_SECONDS + calls)
    outage, lanes = Outage(metrics), Lanes(slots, metrics)
    run = name_of_this_run()
    leases = {stage.takes: stage.lease_seconds for stage in ground.line}
    claims = Claims(
        database=ground.database,
        stores=(ground.store.id,),
        claimed_by=run,
        failures_limit=ground.settings.work.failures_limit,
        leases=leases,
        sign=partial(_sign, ground, lanes),
    )
    bell = Bell(claims.floors.hear, lambda: outage.lasts, partial(beats.promise, "bell"))
    debts = Debts(ground.folder.owed, now=trio.current_time(), patience=max(leases.values()))
    keeper = Keeper(claims, debts, outage, metrics, partial(beats.promise, "keeper"))
    attempts = Attempts(
        claims=claims,
        line=ground.line,
        lanes=lanes,
        workplace=Workplace(store=ground.store, children=children),
        settings=ground.settings.work,
        stop=ground.stop,
        outage=outage,
        metrics=metrics,
    )
    workers = Workers(
        claims=claims,
        attempts=attempts,
        keeper=keeper,
        lanes=lanes,
        bell=bell,
        beats=beats,
        stop=ground.stop,
        outage=outage,
        metrics=metrics,
        settings=ground.settings.work,
    )
    return Parts(
        beats=beats,
        bell=bell,
        keeper=keeper,
        lanes=lanes,
        workers=workers,
        listening=ListeningCopies(
            database=ground.database,
            store=ground.store,
            maker=listening_maker(ground.settings),
            children=children,
            stop=ground.stop,
            outage=outage,
        ),
        metrics=metrics,
        run=run,
        sentence=lambda: sentence_of(lanes.signs(), away=outage.lasts),
    )


def _sign(ground: Ground, lanes: Lanes) -> Sign:
    """Make the sign of life of this process; a daemon that stops claims nothing any more."""
    work = ground.settings.work
    return Sign(
        host=socket.gethostname(),
        pid=os.getpid(),
        beat_seconds=work.renew_seconds,
        workers=0 if ground.stop.asked else work.workers,
        lanes=lanes.signs(),
    )


def name_of_this_run() -> str:
    """Return how the events name this process; host and process id may both come again after a restart."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"

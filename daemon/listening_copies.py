"""Makes listening copies beside the queue: one at a time, last in line, without consequence to any record.

It claims no slot, counts no failure and sets no flag. What fails is tried a few times and then told once;
what a stop or a crash cuts off is begun anew after it.
"""

import time

import structlog
import trio
from attrs import frozen

from daemon.outage import Outage
from daemon.stop import Stop
from stages.media.listening_maker import COPY_NAME, MOST_BYTES_A_SECOND, ListeningMaker
from stages.media.listening_messages import ListeningRequest, Made
from stages.stage import Children
from storage.audio import Store
from storage.database import Database
from storage.errors import DatabaseUnavailable, MeansAway, NoSpace, RubezhError
from storage.listening import (
    LEASE_SECONDS,
    Making,
    give_up_making,
    hold_making,
    publish_made,
    put_off_making,
    take_making,
)

log = structlog.get_logger()

LOOK_SECONDS = 2.0
HOLD_SECONDS = LEASE_SECONDS / 3
MOST_TRIES = 3
RETRY_SECONDS = 60.0
NO_ROOM_SECONDS = 600.0
_FAREWELL_SECONDS = 1.0


class _Lost(Exception):
    """The making is not ours any more, or its record is gone."""


@frozen(kw_only=True)
class ListeningCopies:
    """What it takes to make them."""

    database: Database
    store: Store
    maker: ListeningMaker
    children: Children
    stop: Stop
    outage: Outage

    async def make_all(self) -> None:
        """Make what is wanted, until a stop is asked for."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._make_one_by_one)
            await self.stop.wait()
            nursery.cancel_scope.cancel(reason="a stop was asked for")

    async def _make_one_by_one(self) -> None:
        while True:
            asked_at = trio.current_time()
            try:
                making = await take_making(self.database, self.store)
                if making is None:
                    await trio.sleep(LOOK_SECONDS)
                else:
                    await self._make(making)
            except DatabaseUnavailable as error:
                self.outage.noticed(error, asked_at)
                await trio.sleep(LOOK_SECONDS)

    async def _make(self, making: Making) -> None:
        """See one making to its end, whatever that is; raises DatabaseUnavailable."""
        began = trio.current_time()
        with structlog.contextvars.bound_contextvars(record=str(making.record_id)):
            try:
                made = await self._made(making)
            except _Lost:
                return
            except DatabaseUnavailable:
                raise  # its lease gives it back
            except (MeansAway, NoSpace) as error:
                log.info("listening.put_off", reason=str(error))
                await put_off_making(self.database, making, NO_ROOM_SECONDS, counts=False)
            except (RubezhError, OSError) as error:
                await self._failed(making, str(error), None)
            except Exception as error:  # noqa: BLE001 - a fault in here must not take the service down
                await self._failed(making, f"{type(error).__name__}: {error}", error)
            else:
                seconds = round(trio.current_time() - began, 1)
                log.info("listening.made", media=made.media, is_source=made.is_source, seconds=seconds)

    async def _made(self, making: Making) -> Made:
        """Make it and publish it."""
        until = time.monotonic() + LEASE_SECONDS / 2
        await self.store.check_room(round((making.decoded_seconds or 0.0) * MOST_BYTES_A_SECOND))
        folder = await self.store.listening_folder(making.record_id, making.token, until=until)
        may_be_source = not making.track and not making.audio_warnings
        request = ListeningRequest(
            source=str(self.store.path(making.source_path)) if may_be_source else None,
            audio=str(self.store.path(making.audio_path)),
            target=str(folder / COPY_NAME),
        )
        hold = _Hold(self.database, making, self.outage)
        try:
            made = await self.maker.make(request, folder, self.children, hold.on)
        except trio.Cancelled:
            await self._give_back(making)  # noqa: ASYNC102 - shields and bounds itself
            raise
        copy = (folder / COPY_NAME).relative_to(self.store.root)
        path = making.source_path if made.is_source else str(copy)
        await self._publish(making, path, made)
        return made

    async def _publish(self, making: Making, path: str, made: Made) -> None:
        """Name what was made, however long the database is away; raises _Lost when it is not ours."""
        while True:
            asked_at = trio.current_time()
            try:
                is_ours = await publish_made(self.database, making, path, made.media, made.peaks)
            except DatabaseUnavailable as error:
                self.outage.noticed(error, asked_at)
                await trio.sleep(LOOK_SECONDS)
                continue
            if not is_ours:
                raise _Lost
            return

    async def _give_back(self, making: Making) -> None:
        """Leave a making that a stop cut off to the next run at once, if the database answers in time."""
        with trio.move_on_after(_FAREWELL_SECONDS, shield=True):
            try:
                await put_off_making(self.database, making, 0.0, counts=False)
            except DatabaseUnavailable as error:
                log.debug("listening.put_off", reason=str(error))  # its lease gives it back

    async def _failed(self, making: Making, cause: str, fault: Exception | None) -> None:
        if making.tries < MOST_TRIES:
            log.info("listening.put_off", reason=cause, tries=making.tries)
            await put_off_making(self.database, making, RETRY_SECONDS * making.tries, counts=True)
        elif await give_up_making(self.database, making, cause):
            log.warning("listening.failed", reason=cause, exc_info=fault)


class _Hold:
    """Holds a making on while signs of life come; raises _Lost when it is another's, or nobody's."""

    def __init__(self, database: Database, making: Making, outage: Outage) -> None:
        self._database, self._making, self._outage = database, making, outage
        self._next = trio.current_time() + HOLD_SECONDS

    async def on(self) -> None:
        asked_at = trio.current_time()
        if asked_at < self._next:
            return
        self._next = asked_at + HOLD_SECONDS
        try:
            is_ours = await hold_making(self._database, self._making)
        except DatabaseUnavailable as error:
            self._outage.noticed(error, asked_at)
            return  # nobody else can take it meanwhile; the next sign asks again
        if not is_ours:
            raise _Lost

"""Takes what is put into the watch folder, as a submission of the account whose folder it lies in.

A file is moved when its record is committed. Whatever breaks off before that leaves it where it is, and the
next look takes it again: what the account has already is found by its content, and makes no second record.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog
import trio
from attrs import define, field

from daemon.intake.doors import Doors
from daemon.intake.options import MOST_LETTERS, Options
from daemon.intake.problems import Problem
from daemon.intake.receiving import Sink
from daemon.intake.submitting import take_in
from daemon.settings import WatchSettings
from daemon.watching.folder import DONE, FAILED, Changed, accounts_in, check, files_in, move, opened
from daemon.watching.stillness import Look, Stillness
from storage.account import Account
from storage.accounts import find_account
from storage.errors import DatabaseUnavailable, NoSpace

log = structlog.get_logger()

T = TypeVar("T")

_BLOCK = 1024 * 1024
_LATER = (429, 503, 507)  # what a sender would be told to try again


class Unfit(Exception):
    """The file can be no record; the text is a sentence that says why."""


@define(kw_only=True)
class Watch:
    """Looks into every account's folder every few seconds; one recording is taken at a time."""

    doors: Doors
    settings: WatchSettings
    _stillness: Stillness = field(factory=Stillness, init=False)
    _told: dict[tuple[Path, str], str] = field(factory=dict, init=False)

    async def keep(self) -> None:
        """Look and take, for ever."""
        root = Path(self.settings.folder)
        while True:
            if not self.doors.stopping():
                await self.look(root)
            await trio.sleep(self.settings.every_seconds)

    async def look(self, root: Path) -> None:
        """Look once into every folder, and take what has stopped growing."""
        looks: dict[Path, Look] = {}
        for folder in await self._read(root, accounts_in) or ():
            looks |= await self._read(folder, files_in) or {}
        still = self._stillness.still(looks, trio.current_time(), self.settings.still_seconds)
        try:
            owners = {folder: await self._account(folder) for folder in {path.parent for path in still}}
        except DatabaseUnavailable as error:
            self._waits(root, str(error))
            return
        for path in still:
            if (account := owners[path.parent]) is not None and not self.doors.stopping():
                await self._take(path, account)

    async def _read(self, folder: Path, read: Callable[[Path], T]) -> T | None:
        """Read a folder; None where it cannot be read, which is told once."""
        try:
            found = await trio.to_thread.run_sync(read, folder)
        except OSError as error:
            self._stuck(folder, "reading", f"the folder cannot be read ({error.strerror})")
            return None
        self._told.pop((folder, "reading"), None)
        return found

    async def _take(self, path: Path, account: Account) -> None:
        """Make a record of a file that is still, and move it; whatever cannot be now is left where it is."""
        look = self._stillness.look_of(path)
        try:
            record_id = await take_in(self.doors, account, partial(self._bring, path, look), same_again=True)
            await trio.to_thread.run_sync(move, path, look, DONE)
            log.info("watch.taken", record=str(record_id), owner=str(account.id), path=_shown(path))
            self._told.pop((path, "taking"), None)
        except Changed:
            return  # it has its turn when it is still again
        except Unfit as unfit:
            await self._fail(path, look, str(unfit))
        except (DatabaseUnavailable, NoSpace) as error:
            self._waits(path, str(error))
        except Problem as problem:
            if problem.status in _LATER:
                self._waits(path, problem.detail)
            else:
                await self._fail(path, look, problem.detail)
        except OSError as error:
            self._stillness.leave(path)
            self._stuck(path, "taking", f"it cannot be read or moved ({error.strerror})")

    async def _account(self, folder: Path) -> Account | None:
        name = _shown(Path(folder.name))  # bytes that are no text are no account's name
        account = await find_account(self.doors.database, name)
        if account is None or account.disabled_at is not None:
            self._stuck(folder, "account", "there is no account of its name, or it is disabled")
            return None
        self._told.pop((folder, "account"), None)
        return account

    async def _bring(self, path: Path, look: Look, sink: Sink) -> Options:
        """Bring a file into the store.

        Raises Changed for one that is no longer what was seen, Unfit for one that can be no record.
        """
        largest = self.doors.settings.largest_bytes
        if not look.size:
            raise Unfit("The file is empty.")
        if look.size > largest:
            raise Unfit(f"The file has {look.size} bytes, and the most that is taken is {largest}.")
        await sink.expect(look.size)
        with opened(path, look) as fd:
            while block := await trio.to_thread.run_sync(os.read, fd, _BLOCK):
                await sink.write(block)
                if sink.size > look.size:
                    raise Changed
            check(fd, look)
        return Options(filename=_shown(Path(path.name))[: MOST_LETTERS["filename"]])

    async def _fail(self, path: Path, look: Look, reason: str) -> None:
        """Put aside what can be no record, with the reason beside it."""
        try:
            await trio.to_thread.run_sync(partial(move, path, look, FAILED, because=reason))
        except Changed:
            return
        except OSError as error:
            self._stillness.leave(path)
            reason = f"{reason} It cannot be moved ({error.strerror})."
        log.warning("watch.refused", path=_shown(path), reason=reason)

    def _waits(self, path: Path, reason: str) -> None:
        if self._is_news(path, "taking", reason):
            log.warning("watch.waits", path=_shown(path), reason=reason)

    def _stuck(self, path: Path, about: str, reason: str) -> None:
        if self._is_news(path, about, reason):
            log.warning("watch.stuck", path=_shown(path), reason=reason)

    def _is_news(self, path: Path, about: str, reason: str) -> bool:
        """Tell whether this was not said already: what holds something up is told once, while it does."""
        said, self._told[path, about] = self._told.get((path, about)), reason
        return said != reason


def _shown(path: Path) -> str:
    """Return a path as text, whatever bytes its names are."""
    return os.fsencode(path).decode("utf-8", "replace")

"""Give-backs owed: claims whose end could not be told to the database, kept here and, at an exit, on disk.

Only an orderly stop writes here. One file a token in the state folder's `owed/`; the next start pays.
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import structlog

log = structlog.get_logger()

_TOKEN = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Debts:
    """What is owed, each until a moment on Trio's clock after which its claim cannot come any more."""

    def __init__(self, folder: Path, *, now: float, patience: float) -> None:
        """Read what earlier runs left; a claim may still come for `patience` seconds after its debt began."""
        self._folder = folder
        self._open = {token: now + max(0.0, patience - age) for token, age in self._left()}
        self._written = set(self._open)

    def incur(self, token: UUID, until: float) -> None:
        """Owe the give-back of `token` until then; the database's own lease ends it afterwards."""
        self._open[token] = until

    def settle(self, token: UUID) -> None:
        """Owe `token` no longer."""
        self._open.pop(token, None)
        self._written.discard(token)
        (self._folder / str(token)).unlink(missing_ok=True)

    def not_found(self, token: UUID, now: float) -> None:
        """The database was asked at `now`, and no record carries `token`: it may come until its moment."""
        if self._open.get(token, now) <= now:
            self.settle(token)

    def open_at(self, now: float) -> list[UUID]:
        """Return what is owed now; what has passed its moment is dropped, unless an earlier run left it.

        An outage must not pile debts up; what is on the disk is of the last run's end alone, and is asked for
        once at least, however old.
        """
        for token in [token for token, until in self._open.items() if until < now]:
            if token not in self._written:
                self.settle(token)
        return list(self._open)

    def write(self) -> None:
        """Make every debt outlast the process, if it does not already: fsynced, the folder too."""
        for token in self._open:
            place = self._folder / str(token)
            if place.exists():
                continue
            log.warning("give_back.owed", token=str(token))
            with place.open("wb") as file:
                os.fsync(file.fileno())
            self._written.add(token)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _left(self) -> Iterator[tuple[UUID, float]]:
        """Yield each debt that was written, and for how many seconds it has been there."""
        for file in self._folder.iterdir():
            if _TOKEN.fullmatch(file.name):  # anything else is not ours: left to whoever put it there
                yield UUID(file.name), time.time() - file.stat().st_mtime

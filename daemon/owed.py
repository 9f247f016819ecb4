"""Give-backs owed: claims whose end could not be told to the database, kept here and, at an exit, on disk.

Only an orderly stop writes here. One file a token in the state folder's `owed/`; the next start pays.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import structlog

log = structlog.get_logger()

_TOKEN = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Debts:
    """What is owed, each until a moment on Trio's clock after which no answer can come any more."""

    def __init__(self, folder: Path, *, until: float) -> None:
        """Read what earlier runs left in `folder`; those debts are open until `until`."""
        self._folder = folder
        self._open: dict[UUID, float] = dict.fromkeys(self._left(), until)

    def incur(self, token: UUID, until: float) -> None:
        """Owe the give-back of `token` until then; the database's own lease ends it afterwards."""
        self._open[token] = until

    def settle(self, token: UUID) -> None:
        """Owe `token` no longer."""
        self._open.pop(token, None)
        (self._folder / str(token)).unlink(missing_ok=True)

    def open_at(self, now: float) -> list[UUID]:
        """Return what is owed now; what has passed its moment is dropped."""
        for token in [token for token, until in self._open.items() if until < now]:
            self.settle(token)
        return list(self._open)

    def write(self) -> None:
        """Make every debt outlast the process: fsynced, the folder too."""
        for token in self._open:
            log.warning("give_back.owed", token=str(token))
            with (self._folder / str(token)).open("wb") as file:
                os.fsync(file.fileno())
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _left(self) -> Iterator[UUID]:
        for file in self._folder.iterdir():
            if _TOKEN.fullmatch(file.name):  # anything else is not ours: left to whoever put it there
                yield UUID(file.name)

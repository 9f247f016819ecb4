"""Signs of life: what each running daemon claims and what keeps it from claiming, to explain what waits."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from attrs import asdict, frozen

from storage.database import Connection, Database
from storage.sql import query

LONGEST_REASON = 500  # characters of why a lane is closed


@frozen(kw_only=True)
class LaneSign:
    """A lane of one process: how many of its slots are at work, and why it is closed if it is."""

    name: str
    slots: int
    busy: int
    closed_because: str | None


@frozen(kw_only=True)
class Sign:
    """What a daemon says of itself; the next sign follows within `beat_seconds`."""

    host: str
    pid: int
    beat_seconds: float
    workers: int
    lanes: tuple[LaneSign, ...]


class Pulse:
    """When the next sign of life is due."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with one due at once."""
        self.beat_seconds = 0.0
        self._clock = clock
        self._felt_at = -math.inf

    @property
    def is_due(self) -> bool:
        """True when the last sign is a beat ago; a tenth early, as whoever asks comes at intervals, too."""
        return self._clock() - self._felt_at >= self.beat_seconds * 0.9

    def felt(self) -> None:
        """A sign has reached the database."""
        self._felt_at = self._clock()


def sign_as_json(sign: Sign) -> Mapping[str, Any]:
    """Return a sign as plain data that PostgreSQL takes, whatever words the reasons hold."""
    said = asdict(sign)
    said["host"] = _storable(sign.host)
    for lane in said["lanes"]:
        if lane["closed_because"] is not None:
            lane["closed_because"] = _storable(lane["closed_because"])[:LONGEST_REASON]
    return said


async def take_leave(database: Database, run: str) -> None:
    """Say that a daemon has ended in good order: nobody need wonder why it gives no sign."""
    await database.transact(_in_take_leave, run)


async def takes_writes(database: Database, seconds: float) -> bool:
    """Tell whether the database takes writes; raises DatabaseUnavailable when it does not answer in time."""
    return await database.transact_within(seconds, _in_takes_writes)


async def _in_take_leave(connection: Connection, run: str) -> None:
    await connection.execute(query("daemon_left"), {"run": run})


async def _in_takes_writes(connection: Connection) -> bool:
    row = await (await connection.execute(query("database_state"))).fetchone()
    return row is not None and bool(row[0])


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")

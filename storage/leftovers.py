"""What a crash left in a store: unfinished files go, bytes no row knows are put aside for days first.

The absence of a row never licenses a deletion by itself: a database restored from last week's backup knows
nothing of this week's records.
"""

import fcntl
import math
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import structlog

from storage.audio import Store
from storage.database import Connection, Database
from storage.sql import query

_MINUTE = 60.0
_DAY = 86_400.0
UNFINISHED_AFTER = _MINUTE  # between making the file and locking it lies a moment
UNKNOWN_AFTER = 2 * _DAY
QUARANTINE_FOR = 30 * _DAY
_BATCH = 1000

log = structlog.get_logger()


async def sweep_leftovers(database: Database, store: Store) -> None:
    """Remove unfinished files nobody is at, put unknown records aside, let go what was aside long enough.

    Logs everything it moves or removes. Raises DatabaseUnavailable.
    """
    for name in await store.in_thread(_remove_unfinished, store.root / "incoming"):
        log.info("leftover.removed", record=name, cause="never received to its end")
    records, quarantine = store.root / "records", store.root / "quarantine"
    old = await store.in_thread(older_than, records, UNKNOWN_AFTER)
    for record_id in old - await _known(database, old):
        await store.in_thread(_put_aside, records / str(record_id), quarantine / str(record_id))
        log.warning("leftover.quarantined", record=record_id, days=QUARANTINE_FOR / _DAY)
    aside = await store.in_thread(older_than, quarantine, 0.0)
    for record_id in await _known(database, aside):
        await store.in_thread(_bring_back, quarantine / str(record_id), records / str(record_id))
        log.warning("leftover.returned", record=record_id)
    over = await store.in_thread(older_than, quarantine, QUARANTINE_FOR)
    for record_id in over - await _known(database, over):
        await store.in_thread(shutil.rmtree, quarantine / str(record_id))
        log.warning(
            "leftover.removed", record=record_id, cause="no row knew it for the days of its quarantine"
        )


async def _known(database: Database, ids: set[UUID]) -> set[UUID]:
    known: set[UUID] = set()
    ordered = sorted(ids)
    for start in range(0, len(ordered), _BATCH):
        known |= await database.transact(_in_known, ordered[start : start + _BATCH])
    return known


async def _in_known(connection: Connection, ids: list[UUID]) -> set[UUID]:
    cursor = await connection.execute(query("records_known"), {"ids": ids})
    return {row[0] for row in await cursor.fetchall()}


def _remove_unfinished(incoming: Path) -> list[str]:
    """Remove what no living process holds; one that holds a file has locked it."""
    return [path.name for path in _aged(incoming, UNFINISHED_AFTER) if removed_unless_held(path)]


def removed_unless_held(path: Path) -> bool:
    """Remove a file, and say so, unless a living process has locked it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False  # received to its end meanwhile, or another daemon on this store was quicker
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(fd)


def older_than(folder: Path, seconds: float) -> set[UUID]:
    """Return the ids among the names in a folder that have not changed for so long."""
    return {record_id for path in _aged(folder, seconds) if (record_id := _as_id(path.name)) is not None}


def _aged(folder: Path, seconds: float) -> Iterator[Path]:
    latest = time.time() - seconds
    for entry in os.scandir(folder):
        if _last_changed(entry) <= latest:
            yield Path(entry.path)


def _last_changed(entry: "os.DirEntry[str]") -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return math.inf  # gone meanwhile: another daemon on this store was quicker


def _as_id(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None


def _put_aside(record: Path, aside: Path) -> None:
    record.rename(aside)
    os.utime(aside)  # its days begin now


def _bring_back(aside: Path, record: Path) -> None:
    aside.rename(record)

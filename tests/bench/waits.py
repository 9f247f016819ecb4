"""A thousand polls that wait: how soon one of them hears of its change, and all of them of theirs."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from uuid import UUID

import psycopg
import trio
from attrs import define, field
from psycopg.rows import scalar_row

from tests.acceptance.longpolls import RESTING, Crowd, Waiter
from tests.bench.server import migrated, postgres
from tests.bench.table import load, show

WAITING = 1000
SINGLE = 100  # of those, one by one, in each round
_SETTLING = 2.0
_CHANGE = "UPDATE records SET edition = edition + 1 WHERE id = ANY(%s)"


@define
class _Found:
    """What was measured in seconds, and of the server's process after each round."""

    single: list[float] = field(factory=list)
    whole: list[float] = field(factory=list)
    cpu: list[float] = field(factory=list)
    megabytes: list[float] = field(factory=list)
    descriptors: list[int] = field(factory=list)


def run(rounds: int) -> None:
    """Measure and print."""
    before = load()
    with postgres() as dsn, tempfile.TemporaryDirectory(prefix="rz-") as name:
        migrated(dsn)
        command = [sys.executable, "-m", "tests.bench.doors_server", dsn, name]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            token = json.loads(server.stdout.readline())["token"]
            with psycopg.connect(dsn, autocommit=True, row_factory=scalar_row) as connection:
                connection.execute("DELETE FROM accounts WHERE name = 'bench'")
                connection.execute("DELETE FROM stores WHERE id NOT IN (SELECT store_id FROM records)")
                ids = connection.execute(RESTING, {"count": WAITING}).fetchall()
            socket = str(Path(name) / "doors.sock")
            found = trio.run(_measure, dsn, socket, token, ids, server.pid, rounds)
            server.communicate(timeout=30)
    hundredths = quantiles(found.single, n=100)
    single = (hundredths[49], hundredths[98], max(found.single))
    show(
        f"{WAITING} polls that wait",
        ("", "p50", "p99", "most"),
        [
            ("one change among them, ms", *(1000 * each for each in single)),
            ("all of them changed at once, ms", 1000 * median(found.whole), "", 1000 * max(found.whole)),
            ("the same, CPU of the service, ms", 1000 * median(found.cpu), "", 1000 * max(found.cpu)),
        ],
        (
            f"after each round, MB: {', '.join(f'{each:.0f}' for each in found.megabytes)}",
            f"and descriptors: {', '.join(map(str, found.descriptors))}",
            f"{rounds} rounds of {SINGLE} single changes and one of all",
            f"load before {before}, after {load()}",
        ),
    )


async def _measure(dsn: str, socket: str, token: str, ids: Sequence[UUID], pid: int, rounds: int) -> _Found:
    found = _Found()
    async with trio.open_nursery() as nursery:
        crowd = Crowd(socket, token, nursery)
        with psycopg.connect(dsn, autocommit=True) as connection:
            for _ in range(rounds):
                waiters = [await crowd.wait(each, await crowd.etag(each), 60) for each in ids]
                await trio.sleep(_SETTLING)
                for waiter in waiters[:SINGLE]:
                    found.single.append(await _changed(connection, [waiter]))
                spent = _cpu(pid)
                found.whole.append(await _changed(connection, waiters[SINGLE:]))
                found.cpu.append(_cpu(pid) - spent)
                await trio.sleep(_SETTLING)
                found.megabytes.append(_megabytes(pid))
                found.descriptors.append(_descriptors(pid))
    return found


async def _changed(connection: "psycopg.Connection[tuple[object, ...]]", waiters: list[Waiter]) -> float:
    """Return the seconds from a change of these records to the last of their answers."""
    ids = [waiter.record_id for waiter in waiters]
    began = trio.current_time()
    await trio.to_thread.run_sync(connection.execute, _CHANGE, [ids])
    for waiter in waiters:
        await waiter.done.wait()
        assert waiter.status == 200, waiter.answer
    return max(waiter.answered_at for waiter in waiters) - began


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

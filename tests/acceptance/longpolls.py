"""Many senders who wait for their records at once, each on a connection of its own to the real socket."""

from pathlib import Path
from typing import LiteralString
from uuid import UUID

import psycopg
import trio
from attrs import define, field, frozen

from tests.acceptance.rig import Daemon, Rig

# Records that nobody claims: their turn comes in an hour.
RESTING: LiteralString = """
INSERT INTO records (id, owner_id, store_id, milestone, lane, wake_at, filename, source_path, source_bytes,
    source_sha256, fingerprint)
SELECT gen_random_uuid(), accounts.id, stores.id, 'created', 'convert', clock_timestamp() + interval '1 hour',
    'talk.ogg', 'records/x/source', 4096, decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex')
FROM accounts, stores, generate_series(1, %(count)s)
RETURNING id
"""


def resting_records(rig: Rig, count: int) -> list[UUID]:
    """Make as many records for the one account there is; return their ids."""
    return [row["id"] for row in rig.ask(RESTING, count=count)]


@define
class Waiter:
    """One who waits: `answer` is there, at `answered_at` on Trio's clock, once the wait is over."""

    record_id: UUID
    answer: bytes = b""
    answered_at: float = 0.0
    done: trio.Event = field(factory=trio.Event)

    @property
    def status(self) -> int:
        """The answer's status."""
        return int(self.answer.split(b" ", 2)[1])


@frozen
class Crowd:
    """Those who wait at one socket with one token."""

    socket: str
    token: str
    nursery: trio.Nursery

    async def etag(self, record_id: UUID) -> str:
        """Return a record's ETag as it is now."""
        answer = await _whole(await self._ask(f"GET /v1/records/{record_id} HTTP/1.1"))
        head = answer.partition(b"\r\n\r\n")[0].decode("latin-1")
        return next(line[6:] for line in head.split("\r\n") if line.lower().startswith("etag: "))

    async def wait(self, record_id: UUID, etag: str, seconds: int) -> Waiter:
        """Have one more wait for a record."""
        waiter = Waiter(record_id)
        line = f"GET /v1/records/{record_id} HTTP/1.1"
        stream = await self._ask(line, f"If-None-Match: {etag}", f"Prefer: wait={seconds}")
        self.nursery.start_soon(self._wait, waiter, stream)
        return waiter

    async def _wait(self, waiter: Waiter, stream: trio.SocketStream) -> None:
        waiter.answer = await _whole(stream)
        waiter.answered_at = trio.current_time()
        waiter.done.set()

    async def _ask(self, *lines: str) -> trio.SocketStream:
        told = ("Host: rubezh", f"Authorization: Bearer {self.token}", "Connection: close", "", "")
        stream = await trio.open_unix_socket(self.socket)
        await stream.send_all("\r\n".join((*lines, *told)).encode())
        return stream


async def _whole(stream: trio.SocketStream) -> bytes:
    answer = b""
    async with stream:
        async for part in stream:
            answer += part
    return answer


def descriptors(daemon: Daemon) -> int:
    """Return how many descriptors a daemon has open."""
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


class Statements:
    """What the database was asked by the doors, in its own log."""

    def __init__(self, dsn: str) -> None:
        """Have every statement of sessions that begin from now on logged."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(
                psycopg.sql.SQL("ALTER DATABASE {} SET log_statement = 'all'").format(
                    psycopg.sql.Identifier(name)
                )
            )
            [data] = connection.execute("SHOW data_directory").fetchone() or [""]
        self._log = Path(data).parent / "log"
        self.forget()

    def forget(self) -> None:
        """Count from here on."""
        self._from = self._log.stat().st_size

    def of_polls(self) -> int:
        """Return how many statements were about who somebody is and what records are at."""
        with self._log.open("rb") as log:
            log.seek(self._from)
            said = log.read()
        return sum(
            said.count(words) for words in (b"-- Whose secrets these are", b"-- All that the poll shows")
        )

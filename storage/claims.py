"""The claim protocol: claim, read, renew, settle, give back; every write is conditional on the token."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from attrs import define, field, frozen
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from storage.claim import Claim, ClaimLost, NotFound, NoWork
from storage.daemons import Pulse, Sign, sign_as_json
from storage.database import Connection, Database
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.floors import BOTTOM, Floors
from storage.reading import record_from_row
from storage.record import Milestone, Record, StopCode
from storage.settling import End, Passage, in_give_back, in_settle
from storage.sql import query

BATCH = 1000  # as wake.sql has it
MOST_BATCHES = 1000


__all__ = ["Claims", "LastFailure", "Passage", "Settled"]


@frozen(kw_only=True)
class Settled:
    """The end was written, once; `stopped` is the code of the stop flag if this end set it."""

    stopped: StopCode | None = None


@frozen(kw_only=True)
class LastFailure:
    """The end of the claim before this one: `kind` and `cause` are None when that claim has no end at all.

    `fault` is the stage's own word for it, if it had one.
    """

    kind: str | None
    cause: str | None
    fault: str | None = None


@define(kw_only=True)
class Claims:
    """The door to the queue for one process; `claimed_by` names it in the events, `leases` are seconds.

    `failures_limit` may change while it is open.

    `sign` makes the sign of life that goes out with a claim, or with a wake while there are none.
    """

    database: Database
    stores: tuple[UUID, ...]
    claimed_by: str
    failures_limit: int
    leases: Mapping[Milestone, float]
    sign: Callable[[], Sign] | None = None
    floors: Floors = field(factory=Floors, init=False, eq=False, repr=False)
    pulse: Pulse = field(factory=Pulse, init=False, eq=False, repr=False)

    async def claim(self, token: UUID, lanes: Iterable[str]) -> Claim | NoWork:
        """Take the first ready record of the free `lanes` under `token`, which the caller made beforehand.

        After DatabaseUnavailable the claim may or may not have been made: give it back by its token.
        """
        if self.sign is not None and self.floors.wake_is_due:
            await self._wake(self.floors.woken_until)
        free, sign = list(lanes), self._sign_if_due()
        with self.floors.asking(free) as start:
            asked = {
                "token": token,
                "sign": sign,
                "claimed_by": self.claimed_by,
                "lanes": free,
                "floors": start.floors,
                "wake_from": start.wake_from,
                "stores": list(self.stores),
                "failures_limit": self.failures_limit,
                "milestones": list(self.leases),
                "leases": list(self.leases.values()),
            }
            answer = await self.database.transact(_in_claim, asked)
        if isinstance(answer, NoWork):
            self.floors.found_nothing()
        if sign is not None:
            self.pulse.felt()
        return answer

    async def read(self, record_id: UUID) -> Record | NotFound:
        """Read the columns of a record just claimed: an ordinary read, apart from the claim."""
        record = await self.database.transact(in_read, record_id)
        if isinstance(record, Record):
            self.floors.rise(record.created_at)
        return record

    async def last_failure(self, claim: Claim) -> LastFailure | None:
        """Return how the claim before this one ended, or None when it is the first."""
        return await self.database.transact(_in_last_failure, claim)

    async def renew(self, tokens: Iterable[UUID]) -> dict[UUID, float]:
        """Push the leases of these claims; return the seconds of each that still is somebody's."""
        return await self.database.transact(_in_renew, list(tokens))

    async def settle(
        self,
        claim: Claim,
        ending: Reached | Deferred | Hopeless | Failed | TimedOut | GivenBack,
        passage: Passage,
        detail: Mapping[str, Any],
    ) -> Settled | ClaimLost:
        """Write how an attempt ended, if its claim is still its own; say so if it was written before.

        May be repeated after DatabaseUnavailable. Raises DataRefused when a finding cannot be stored.
        """
        end = await self.database.transact(in_settle, claim, ending, passage, self.claimed_by, detail)
        return ClaimLost() if end is None else self._settled(end)

    async def give_back(self, token: UUID, why: str) -> bool:
        """Give a claim back by its token alone; False when no record carries it (not yet, or no longer)."""
        end = await self.database.transact(in_give_back, token, self.claimed_by, {"why": why})
        if end is not None:
            self._settled(end)
        return end is not None

    async def wake(self) -> None:
        """Let what has come due join those that wait for a claimer, and say that this daemon lives.

        Left out while claims find nothing at all and carry that sign themselves.
        """
        sign = self._sign_if_due()
        if self.sign is None or sign is not None or not self.floors.are_idle:
            await self._wake(BOTTOM, sign)

    async def _wake(self, wake_from: datetime, sign: Jsonb | None = None) -> None:
        for _ in range(MOST_BATCHES):
            until, woken = await self.database.transact(_in_wake, wake_from, sign)
            if sign is not None:
                self.pulse.felt()
                sign = None
            for lane, _, created_at in woken:
                self.floors.fall(lane, created_at)
            if sum(number for _, number, _ in woken) < BATCH:
                self.floors.woken(until)
                return

    def _sign_if_due(self) -> Jsonb | None:
        if self.sign is None or not self.pulse.is_due:
            return None
        sign = self.sign()
        self.pulse.beat_seconds = sign.beat_seconds
        ours = {
            "run": self.claimed_by,
            "failures_limit": self.failures_limit,
            "stores": [str(store) for store in self.stores],
            "milestones": [str(milestone) for milestone in self.leases],
        }
        return Jsonb({**sign_as_json(sign), **ours})

    def _settled(self, end: End) -> Settled:
        if end.ready_in is not None and end.created_at is not None:
            self.floors.fall(end.ready_in, end.created_at)
        return Settled(stopped=None if end.stop_code is None else StopCode(end.stop_code))


async def _in_claim(connection: Connection, asked: Mapping[str, Any]) -> Claim | NoWork:
    row = await (await connection.execute(query("claim"), asked)).fetchone()
    return NoWork() if row is None else Claim(record_id=row[0], token=row[1])


async def in_read(connection: Connection, record_id: UUID) -> Record | NotFound:
    """Read one record that is not deleted."""
    cursor = connection.cursor(row_factory=dict_row)
    row = await (await cursor.execute(query("read_record"), {"id": record_id})).fetchone()
    return NotFound(record_id) if row is None else record_from_row(row)


async def _in_last_failure(connection: Connection, claim: Claim) -> LastFailure | None:
    asked = {"id": claim.record_id, "token": claim.token}
    row = await (await connection.execute(query("last_failure"), asked)).fetchone()
    return None if row is None else LastFailure(kind=row[1], cause=row[2], fault=row[3])


async def _in_renew(connection: Connection, tokens: list[UUID]) -> dict[UUID, float]:
    cursor = await connection.execute(query("renew"), {"tokens": tokens})
    return dict(await cursor.fetchall())


async def _in_wake(
    connection: Connection, wake_from: datetime, sign: Jsonb | None
) -> tuple[datetime, list[tuple[str, int, datetime]]]:
    asked = {"wake_from": wake_from, "sign": sign}
    rows = await (await connection.execute(query("wake"), asked)).fetchall()
    return rows[0][0], [
        (lane, number, created_at) for _, lane, number, created_at in rows if lane is not None
    ]

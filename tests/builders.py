"""Builds a queue for tests: an account, a store, records by plain SQL, and a process that claims them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID, uuid4

from attrs import evolve, frozen
from psycopg import sql
from psycopg.rows import dict_row

from storage.claim import Claim, ClaimLost, NoWork
from storage.claims import Claims, Passage, Settled
from storage.database import Connection, Database
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.ids import new_id
from storage.record import Advance, Conversion, Findings, Milestone, OperationBegun, Segment

LEASES = {Milestone.CREATED: 60.0, Milestone.CONVERTED: 30.0, Milestone.TRANSCRIBE: 90.0}
LANES = {
    Milestone.CREATED: "convert",
    Milestone.CONVERTED: "whisper",
    Milestone.TRANSCRIBE: "whisper",
    Milestone.DONE: None,
}
NEXT = {
    Milestone.CREATED: Milestone.CONVERTED,
    Milestone.CONVERTED: Milestone.TRANSCRIBE,
    Milestone.TRANSCRIBE: Milestone.DONE,
}
EVERY_LANE = ("convert", "whisper")
FAILURES_LIMIT = 3
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

Written = Reached | Deferred | Hopeless | Failed | TimedOut | GivenBack
"""The ends that are written; the seventh is the lost claim."""


async def ask(
    database: Database,
    statement: LiteralString | sql.Composed,
    values: Sequence[object] | Mapping[str, object] | None = None,
) -> list[dict[str, Any]]:
    """Run one statement of the test's own; return its rows, if it has any."""

    async def _in_ask(connection: Connection) -> list[dict[str, Any]]:
        cursor = connection.cursor(row_factory=dict_row)
        await cursor.execute(statement, values)
        return await cursor.fetchall() if cursor.description else []

    return await database.transact(_in_ask)


async def put(database: Database, table: str, columns: Mapping[str, object]) -> None:
    """Insert one row."""
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(map(sql.Placeholder, columns)),
    )
    await ask(database, statement, columns)


async def put_account(database: Database) -> UUID:
    """Make an account; return its id."""
    account_id = new_id()
    await put(database, "accounts", {"id": account_id, "name": f"account {account_id}"})
    return account_id


async def put_store(database: Database) -> UUID:
    """Make the row of a store; return its id."""
    store_id = new_id()
    await put(database, "stores", {"id": store_id})
    return store_id


def claims_of(database: Database, *stores: UUID, limit: int = FAILURES_LIMIT, by: str = "one") -> Claims:
    """Return the claims of a process that has mounted `stores`."""
    return Claims(database=database, stores=stores, claimed_by=by, failures_limit=limit, leases=LEASES)


def passage_of(milestone: Milestone, *, limit: float = 3600.0, retry_delay: float = 0.0) -> Passage:
    """Return the way on from `milestone`, as the line would say it."""
    gives = NEXT[milestone]
    return Passage(gives=gives, next_lane=LANES[gives], milestone_limit=limit, retry_delay=retry_delay)


def conversion(audio_path: str = "records/x/y/audio.w64") -> Conversion:
    """Return what a converting stage found."""
    return Conversion(
        audio_path=audio_path, declared_seconds=61.0, decoded_seconds=60.5, audio_warnings=("cut off",)
    )


def begun() -> OperationBegun:
    """Return what the start of a recognition found."""
    return OperationBegun(recogniser="whisper", operation={"slice": 0})


def advance(*segments: Segment, recognised_seconds: float = 10.0) -> Advance:
    """Return what one step of a recognition found."""
    return Advance(
        operation={"slice": 1},
        recognised_seconds=recognised_seconds,
        found_language="ru",
        segments=segments,
        anew=False,
    )


def segment(number: int, text: str, *, slice_: int = 0) -> Segment:
    """Return a segment of one second."""
    return Segment(slice=slice_, number=number, start=float(number), end=number + 1.0, text=text)


FOUND: Mapping[Milestone, Findings] = {
    Milestone.CREATED: conversion(),
    Milestone.CONVERTED: begun(),
    Milestone.TRANSCRIBE: advance(segment(0, "found")),
}


@frozen(kw_only=True)
class Queue:
    """One owner, one store, and the claims of one process that has mounted it."""

    database: Database
    owner: UUID
    store: UUID
    claims: Claims

    async def record(self, milestone: Milestone = Milestone.CREATED, **columns: object) -> UUID:
        """Make a record that waits at `milestone`; return its id."""
        record_id = uuid4()
        given: dict[str, object] = {
            "id": record_id,
            "owner_id": self.owner,
            "store_id": self.store,
            "milestone": milestone,
            "lane": LANES[milestone],
            "filename": "talk.ogg",
            "source_path": f"records/{record_id}/source",
            "source_bytes": 4096,
            "source_sha256": bytes(32),
            "fingerprint": bytes(32),
        }
        given |= columns
        await put(self.database, "records", given)
        return UUID(str(given["id"]))

    async def records(self, count: int) -> list[UUID]:
        """Make as many records, a second apart; return their ids in the order of creation."""
        return [await self.record(created_at=NOON + timedelta(seconds=n)) for n in range(count)]

    async def ask(self, lanes: Iterable[str] = EVERY_LANE) -> Claim | NoWork:
        """Claim under a new token."""
        return await self.claims.claim(uuid4(), lanes)

    async def claim(self, lanes: Iterable[str] = EVERY_LANE) -> Claim:
        """Claim what must be there."""
        claim = await self.ask(lanes)
        assert isinstance(claim, Claim)
        return claim

    async def settle(
        self, claim: Claim, ending: Written, detail: Mapping[str, Any] | None = None, **passage: float
    ) -> Settled | ClaimLost:
        """Settle as the milestone of the record asks for; `passage` takes `limit` and `retry_delay`."""
        rows = await ask(self.database, "SELECT milestone FROM records WHERE id = %s", [claim.record_id])
        at = rows[0]["milestone"] if rows else Milestone.CREATED
        way = passage_of(Milestone.TRANSCRIBE if at == Milestone.DONE else Milestone(at), **passage)
        return await self.claims.settle(claim, ending, way, detail or {})

    async def row(self, record_id: UUID) -> dict[str, Any]:
        """Return every column of a record."""
        [row] = await ask(self.database, "SELECT * FROM records WHERE id = %s", [record_id])
        return row

    async def events(self, record_id: UUID) -> list[dict[str, Any]]:
        """Return the history of a record, the oldest event first."""
        return await ask(self.database, "SELECT * FROM events WHERE record_id = %s ORDER BY id", [record_id])

    async def kinds(self, record_id: UUID) -> list[str]:
        """Return the kinds of a record's events, the oldest first."""
        return [event["kind"] for event in await self.events(record_id)]

    async def segments(self, record_id: UUID) -> list[dict[str, Any]]:
        """Return what was recognised of a record, in the order of the audio."""
        statement = "SELECT * FROM segments WHERE record_id = %s ORDER BY slice, number"
        return await ask(self.database, statement, [record_id])

    async def everything(self, record_id: UUID) -> tuple[object, ...]:
        """Return all that the database holds of a record, to see that nothing of it changed."""
        return await self.row(record_id), await self.events(record_id), await self.segments(record_id)

    async def change(self, record_id: UUID, **columns: object) -> None:
        """Write columns of a record, as its owner's edit would."""
        pairs = [sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in columns]
        statement = sql.SQL("UPDATE records SET {} WHERE id = %(this)s").format(sql.SQL(", ").join(pairs))
        await ask(self.database, statement, {**columns, "this": record_id})

    async def lapse(self, record_id: UUID) -> None:
        """Let the lease of a held record run out."""
        statement = """UPDATE records
            SET lease_until = clock_timestamp() - interval '1 s', wake_at = clock_timestamp() - interval '1 s'
            WHERE id = %s AND claim_token IS NOT NULL"""
        await ask(self.database, statement, [record_id])

    async def held_for(self, record_id: UUID, seconds: float) -> None:
        """Let a held record have been held for so long already."""
        statement = """UPDATE records SET claimed_at = clock_timestamp() - make_interval(secs => %s)
            WHERE id = %s AND claim_token IS NOT NULL"""
        await ask(self.database, statement, [seconds, record_id])

    async def come_due(self, record_id: UUID) -> None:
        """Let the delay of a waiting record be over."""
        await ask(self.database, "UPDATE records SET wake_at = clock_timestamp() WHERE id = %s", [record_id])

    def elsewhere(self, *stores: UUID, limit: int = FAILURES_LIMIT) -> "Queue":
        """Return the same queue as another process sees it, by default with the same store mounted."""
        mounted = stores or (self.store,)
        return evolve(self, claims=claims_of(self.database, *mounted, limit=limit, by="two"))


async def a_queue(database: Database) -> Queue:
    """Make a queue in a migrated database."""
    owner, store = await put_account(database), await put_store(database)
    return Queue(database=database, owner=owner, store=store, claims=claims_of(database, store))

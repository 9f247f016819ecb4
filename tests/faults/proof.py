"""What must hold after any fault: of a record and its events, of the sessions of a database, of a pool."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID, uuid4

import trio

from storage.claim import Claim, NoWork
from storage.claims import Settled
from storage.database import Connection, Database
from storage.ending import Reached
from storage.ids import new_id
from storage.owner import Verdict, lift, undelete
from storage.record import Findings, Milestone
from storage.submissions import Submission, accept
from tests.builders import LANES, NEXT, Queue, advance, ask, begun, conversion, passage_of, segment
from tests.model.history import Event, faults, standings
from tests.waiting import until

FINDINGS: Mapping[Milestone, Findings] = {
    Milestone.CREATED: conversion(),
    Milestone.CONVERTED: begun(),
    Milestone.TRANSCRIBE: advance(segment(0, "one"), segment(1, "two")),
}
WHOLE_TEXT = "one two"
PATIENCE_SECONDS = 20.0


def a_submission(queue: Queue) -> Submission:
    """Return a submission to this queue's store; no bytes of it are there."""
    record_id = new_id()
    return Submission(
        id=record_id,
        owner_id=queue.owner,
        filename="talk.ogg",
        title="",
        description="",
        topics=(),
        asked_language=None,
        channels="auto",
        track=None,
        hotwords="",
        store_id=queue.store,
        source_path=f"records/{record_id}/source",
        source_bytes=4096,
        source_sha256=record_id.bytes + record_id.bytes,
    )


_PASSED: Final = """
    WITH moved AS (UPDATE records SET milestone = %(milestone)s, lane = %(lane)s WHERE id = %(id)s)
    INSERT INTO events (record_id, kind, milestone, token, settles, by, detail)
    SELECT %(id)s, told.kind, told.milestone, told.token, told.kind = 'reached', 'an earlier run',
        jsonb_build_object('failures', 1, 'lease_seconds', 60)
    FROM unnest(%(kinds)s::text[], %(milestones)s::text[], %(tokens)s::uuid[])
        AS told (kind, milestone, token)
"""


async def accepted(queue: Queue, milestone: Milestone = Milestone.CREATED) -> UUID:
    """Have a record accepted, and at `milestone` with the history of one that was brought there."""
    record_id = await accept(queue.database, a_submission(queue), lane=str(LANES[Milestone.CREATED]))
    passed = list(Milestone)[: list(Milestone).index(milestone)]
    told = [
        (kind, at, token)
        for takes in passed
        for token in (uuid4(),)
        for kind, at in (("claimed", takes), ("reached", NEXT[takes]))
    ]
    if told:
        kinds, milestones, tokens = map(list, zip(*told, strict=True))
        values: dict[str, object] = {"kinds": kinds, "milestones": milestones, "tokens": tokens}
        values |= {"id": record_id, "milestone": milestone, "lane": LANES[milestone]}
        await ask(queue.database, _PASSED, values)
    return record_id


async def finish(queue: Queue, record_id: UUID) -> None:
    """Bring a record that waits to its last milestone; nothing else may be ready in its queue."""
    while (at := Milestone((await queue.row(record_id))["milestone"])) is not Milestone.DONE:
        claim = await queue.ask()
        assert isinstance(claim, Claim), "the record is stranded: it is not done, and no claim finds it"
        assert claim.record_id == record_id
        assert await queue.claims.settle(claim, Reached(FINDINGS[at]), passage_of(at), {}) == Settled()
    assert (await queue.row(record_id))["recognised_text"] == WHOLE_TEXT


async def see_through(queue: Queue, record_id: UUID) -> None:
    """Bring a record to its last milestone as soon as nobody holds it any more, whatever was in its way."""
    with trio.fail_after(PATIENCE_SECONDS):
        row = await queue.row(record_id)
        while row["milestone"] != Milestone.DONE:
            claim = await queue.ask()
            if isinstance(claim, NoWork):
                await trio.sleep(0.01)
                row = await queue.row(record_id)
                if row["claim_token"] is None:
                    await release(queue, record_id)
                continue
            at = Milestone((await queue.row(record_id))["milestone"])
            settled = await queue.claims.settle(claim, Reached(FINDINGS[at]), passage_of(at), {})
            assert settled == Settled()
            row["milestone"] = passage_of(at).gives
    assert (await queue.row(record_id))["recognised_text"] == WHOLE_TEXT


async def release(queue: Queue, record_id: UUID) -> None:
    """Do what lets a record go on, as a person and the keeper would: undelete, lift, give back."""
    row = await queue.row(record_id)
    if row["deleted_at"] is not None:
        assert await undelete(queue.database, record_id, None, "anna") is Verdict.DONE
    if row["stop_code"] is not None:
        assert await lift(queue.database, record_id, None, "anna") is Verdict.DONE
    if row["claim_token"] is not None:
        assert await queue.claims.give_back(row["claim_token"], "the test is over")


async def remove(queue: Queue, record_id: UUID) -> None:
    """Take a record out of the queue's way."""
    await ask(queue.database, "DELETE FROM records WHERE id = %s", [record_id])


def as_events(rows: Iterable[dict[str, Any]]) -> list[Event]:
    """Return rows of `events` as the checker reads them."""
    return [Event(**row) for row in rows]


async def check_history(queue: Queue, record_id: UUID) -> list[str]:
    """Have the events prove that the protocol was kept and the row say what they say; return their kinds."""
    row, events = await queue.row(record_id), as_events(await queue.events(record_id))
    assert faults(events) == []
    standing = standings(events)[record_id]
    assert (row["milestone"], row["failures"]) == (standing.milestone, standing.count)
    assert (row["claim_token"], row["stop_code"] is not None) == (standing.holder, standing.stopped)
    assert (row["deleted_at"] is not None) == standing.deleted
    texts = [each["text"] for each in await queue.segments(record_id)]
    assert texts in ([], WHOLE_TEXT.split()), "segments are written whole or not at all"
    advanced = any(event.kind in ("deferred", "reached") and event.milestone != "created" for event in events)
    assert not texts or advanced, "segments without the settle that wrote them"
    if row["milestone"] == Milestone.DONE:
        assert row["recognised_text"] == WHOLE_TEXT
    return [event.kind for event in events]


async def check_sessions(database: Database) -> None:
    """No session of this database is left in the middle of something."""

    async def quiet() -> bool:
        busy = await ask(
            database,
            """SELECT state, query FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'""",
        )
        return busy == []

    await until(quiet)


async def check_pool(database: Database, size: int) -> None:
    """A pool still has all its connections: so many calls hold one each at the same moment."""
    together = asyncio.Barrier(size)

    async def _in_meet(connection: Connection) -> None:
        await connection.execute("SELECT 1")
        await together.wait()

    async with trio.open_nursery() as nursery:
        for _ in range(size):
            nursery.start_soon(database.transact, _in_meet)

"""The claim protocol: claim, read, renew, settle, give back; every write is conditional on the token."""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never
from uuid import UUID

from attrs import frozen
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from storage.claim import Claim, ClaimLost, NotFound, NoWork
from storage.database import Connection, Database
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.reading import record_from_row
from storage.record import Advance, Conversion, Findings, Milestone, OperationBegun, Record, Segment, StopCode
from storage.sql import query


@frozen(kw_only=True)
class Passage:
    """What the line says of a record's way on, for the statement that settles its attempt (seconds)."""

    gives: Milestone
    next_lane: str | None
    milestone_limit: float
    retry_delay: float


@frozen(kw_only=True)
class Settled:
    """The end was written, once; `stopped` is the code of the stop flag if this end set it."""

    stopped: StopCode | None = None


@frozen(kw_only=True)
class LastFailure:
    """The end of the claim before this one: `kind` and `cause` are None when that claim has no end at all."""

    kind: str | None
    cause: str | None


@frozen(kw_only=True)
class Claims:
    """The door to the queue for one process; `claimed_by` names it in the events, `leases` are seconds."""

    database: Database
    stores: tuple[UUID, ...]
    claimed_by: str
    failures_limit: int
    leases: Mapping[Milestone, float]

    async def claim(self, token: UUID, lanes: Iterable[str]) -> Claim | NoWork:
        """Take the first ready record of the free `lanes` under `token`, which the caller made beforehand.

        After DatabaseUnavailable the claim may or may not have been made: give it back by its token.
        """
        asked = {
            "token": token,
            "claimed_by": self.claimed_by,
            "lanes": list(lanes),
            "stores": list(self.stores),
            "failures_limit": self.failures_limit,
            "milestones": list(self.leases),
            "leases": list(self.leases.values()),
        }
        return await self.database.transact(_in_claim, asked)

    async def read(self, record_id: UUID) -> Record | NotFound:
        """Read the columns of a claimed record: an ordinary read, apart from the claim."""
        return await self.database.transact(_in_read, record_id)

    async def last_failure(self, claim: Claim) -> LastFailure | None:
        """Return how the claim before this one ended, for the reason of a stop; None when it is the first."""
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
        return await self.database.transact(_in_settle, claim, ending, passage, self.claimed_by, detail)

    async def give_back(self, token: UUID, why: str) -> bool:
        """Give a claim back by its token alone; False when no record carries it (not yet, or no longer)."""
        return await self.database.transact(_in_give_back, token, self.claimed_by, {"why": why})

    async def wake(self) -> None:
        """Let what has come due join those that wait for a claimer."""
        await self.database.transact(_in_wake)


async def _in_claim(connection: Connection, asked: Mapping[str, Any]) -> Claim | NoWork:
    row = await (await connection.execute(query("claim"), asked)).fetchone()
    return NoWork() if row is None else Claim(record_id=row[0], token=row[1])


async def _in_read(connection: Connection, record_id: UUID) -> Record | NotFound:
    cursor = connection.cursor(row_factory=dict_row)
    row = await (await cursor.execute(query("read_record"), {"id": record_id})).fetchone()
    return NotFound(record_id) if row is None else record_from_row(row)


async def _in_last_failure(connection: Connection, claim: Claim) -> LastFailure | None:
    asked = {"id": claim.record_id, "token": claim.token}
    row = await (await connection.execute(query("last_failure"), asked)).fetchone()
    return None if row is None else LastFailure(kind=row[1], cause=row[2])


async def _in_renew(connection: Connection, tokens: list[UUID]) -> dict[UUID, float]:
    cursor = await connection.execute(query("renew"), {"tokens": tokens})
    return dict(await cursor.fetchall())


async def _in_wake(connection: Connection) -> None:
    await connection.execute(query("wake"))


async def _in_give_back(connection: Connection, token: UUID, by: str, detail: Mapping[str, Any]) -> bool:
    asked = {"token": token, "by": by, "detail": Jsonb(detail)}
    return await (await connection.execute(query("end_given_back"), asked)).fetchone() is not None


class _NothingWrittenError(Exception):
    """Rolls a settle back: the claim is not its own any more."""


async def _in_settle(
    connection: Connection,
    claim: Claim,
    ending: Reached | Deferred | Hopeless | Failed | TimedOut | GivenBack,
    passage: Passage,
    by: str,
    detail: Mapping[str, Any],
) -> Settled | ClaimLost:
    guard = {"id": claim.record_id, "token": claim.token}
    try:
        async with connection.transaction():
            if isinstance(ending, Reached | Deferred):
                await _in_write_findings(connection, guard, ending.findings)
            row = await _in_end(connection, guard | {"by": by, "detail": Jsonb(detail)}, ending, passage)
            if row is None:
                raise _NothingWrittenError  # noqa: TRY301 - raised to leave through the transaction
    except _NothingWrittenError:
        found = await (await connection.execute(query("end_found"), guard)).fetchone()
        return ClaimLost() if found is None else _settled(found)
    return _settled(row)


def _settled(row: tuple[Any, ...]) -> Settled:
    return Settled(stopped=None if row[0] is None else StopCode(row[0]))


async def _in_end(
    connection: Connection,
    given: dict[str, Any],
    ending: Reached | Deferred | Hopeless | Failed | TimedOut | GivenBack,
    passage: Passage,
) -> tuple[Any, ...] | None:
    match ending:
        case Reached():
            if passage.gives is Milestone.DONE:
                await connection.execute(query("write_text"), given)
            cursor = await connection.execute(
                query("end_reached"), given | {"milestone": passage.gives, "lane": passage.next_lane}
            )
        case Deferred(delay, _, state):
            reason = (
                f"more than {passage.milestone_limit:.0f} s of work and waiting at one milestone; "
                f"the operation last said: {state or 'still in progress'}"
            )
            cursor = await connection.execute(
                query("end_deferred"),
                given | {"delay": delay, "limit": passage.milestone_limit, "overdue_reason": reason},
            )
        case Hopeless(code, reason):
            cursor = await connection.execute(query("end_stopped"), given | {"code": code, "reason": reason})
        case Failed() | TimedOut():
            kind = "failed" if isinstance(ending, Failed) else "timed_out"
            cursor = await connection.execute(
                query("end_failed"), given | {"kind": kind, "delay": passage.retry_delay}
            )
        case GivenBack():
            cursor = await connection.execute(query("end_given_back"), given)
        case _:
            assert_never(ending)
    return await cursor.fetchone()


async def _in_write_findings(connection: Connection, guard: dict[str, Any], findings: Findings) -> None:
    match findings:
        case Conversion():
            written = await connection.execute(
                query("write_conversion"),
                guard
                | {
                    "audio_path": findings.audio_path,
                    "declared_seconds": findings.declared_seconds,
                    "decoded_seconds": findings.decoded_seconds,
                    "audio_warnings": list(findings.audio_warnings),
                },
            )
        case OperationBegun():
            written = await connection.execute(
                query("write_operation_begun"),
                guard | {"recogniser": findings.recogniser, "operation": Jsonb(findings.operation)},
            )
        case Advance():
            written = await connection.execute(
                query("write_advance"),
                guard
                | {
                    "operation": Jsonb(findings.operation),
                    "recognised_seconds": findings.recognised_seconds,
                    "found_language": findings.found_language,
                },
            )
        case _:
            assert_never(findings)
    if written.rowcount == 0:
        raise _NothingWrittenError
    if isinstance(findings, Advance) and findings.segments:
        await _in_write_segments(connection, guard["id"], findings.segments)


async def _in_write_segments(connection: Connection, record_id: UUID, segments: tuple[Segment, ...]) -> None:
    slices = sorted({segment.slice for segment in segments})
    await connection.execute(query("clear_slices"), {"id": record_id, "slices": slices})
    rows = [
        {
            "slice": segment.slice,
            "number": segment.number,
            "start": segment.start,
            "end": segment.end,
            "text": segment.text,
            "words": [
                {"start": word.start, "end": word.end, "text": word.text, "probability": word.probability}
                for word in segment.words
            ],
        }
        for segment in segments
    ]
    await connection.execute(query("write_segments"), {"id": record_id, "segments": Jsonb(rows)})

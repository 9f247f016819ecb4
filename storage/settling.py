"""How an attempt's end is written: one transaction, each statement conditional on the claim's token."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from attrs import frozen
from psycopg.types.json import Jsonb

from storage.claim import Claim
from storage.database import Connection
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.errors import DataRefused
from storage.record import Advance, Conversion, Findings, Milestone, OperationBegun, Segment
from storage.sql import query


@frozen(kw_only=True)
class Passage:
    """What the line says of a record's way on, for the statement that settles its attempt (seconds)."""

    gives: Milestone
    next_lane: str | None
    milestone_limit: float
    retry_delay: float


@frozen
class End:
    """How a settle left the row: stopped or not, and in which lane it is ready at once."""

    stop_code: str | None
    ready_in: str | None
    created_at: datetime | None


class _NothingWrittenError(Exception):
    """Rolls a settle back: the claim is not its own any more."""


async def in_give_back(connection: Connection, token: UUID, by: str, detail: Mapping[str, Any]) -> End | None:
    """Give a claim back by its token alone; None when no record carries it."""
    asked = {"token": token, "by": by, "detail": _json(detail)}
    row = await (await connection.execute(query("end_given_back"), asked)).fetchone()
    return None if row is None else End(*row[:3])


async def in_settle(
    connection: Connection,
    claim: Claim,
    ending: Reached | Deferred | Hopeless | Failed | TimedOut | GivenBack,
    passage: Passage,
    by: str,
    detail: Mapping[str, Any],
) -> End | None:
    """Write an attempt's end under its token, once; None when the claim is no longer its own.

    First the guarded update of the record, which locks it, then the segments, then the end with its event.
    """
    guard = {"id": claim.record_id, "token": claim.token}
    try:
        async with connection.transaction():
            if isinstance(ending, Reached | Deferred | Hopeless) and ending.findings is not None:
                await _in_write_findings(connection, guard, ending.findings)
            row = await _in_end(connection, guard | {"by": by, "detail": _json(detail)}, ending, passage)
            if row is None:
                raise _NothingWrittenError  # noqa: TRY301 - raised to leave through the transaction
    except _NothingWrittenError:
        found = await (await connection.execute(query("end_found"), guard)).fetchone()
        return None if found is None else End(found[0], None, None)
    return End(*row[:3])


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
        case Hopeless(code, reason, _):
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
                guard | {"recogniser": findings.recogniser, "operation": _json(findings.operation)},
            )
        case Advance():
            written = await connection.execute(
                query("write_advance"),
                guard
                | {
                    "operation": _json(findings.operation),
                    "recognised_seconds": findings.recognised_seconds,
                    "found_language": findings.found_language,
                },
            )
        case _:
            assert_never(findings)
    if written.rowcount == 0:
        raise _NothingWrittenError
    if isinstance(findings, Advance) and findings.anew:
        await connection.execute(query("clear_segments"), {"id": guard["id"]})
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
            "side": segment.side,
            "language": segment.language,
            "gap": segment.gap,
        }
        for segment in segments
    ]
    await connection.execute(query("write_segments"), {"id": record_id, "segments": _json(rows)})


def _json(value: object) -> Jsonb:
    """Return a value for a jsonb column; DataRefused, with nothing sent, for one that JSON cannot hold."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataRefused(f"a finding is not JSON ({error})") from error
    return Jsonb(value)

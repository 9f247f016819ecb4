"""A record is read whole or not at all: no field has a default, and none is made up."""

import re
from datetime import UTC, timedelta
from typing import Any
from uuid import uuid4

import attrs
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from storage.database import Connection
from storage.reading import record_from_row
from storage.record import Advance, Conversion, Milestone, OperationBegun, Record, Stop, StopCode
from storage.sql import query
from tests.builders import NOON, Queue

STOP = ("stop_code", "stop_reason", "stopped_at", "stopped_by")
FIELDS = {field.name for field in attrs.fields(Record)}
OWNERS = {"owner_id", "title", "description", "topics", "asked_language", "edition"}


async def read_row(queue: Queue, **columns: object) -> dict[str, Any]:
    """Return a row as the query for a record gives it."""
    record_id = await queue.record(**columns)  # type: ignore[arg-type]  # its columns are plain objects

    async def _in_row(connection: Connection) -> dict[str, Any]:
        cursor = connection.cursor(row_factory=dict_row)
        row = await (await cursor.execute(query("read_record"), {"id": record_id})).fetchone()
        assert row is not None
        return row

    return await queue.database.transact(_in_row)


async def test_s_s11_a_column_missing_from_a_read_is_an_error(queue: Queue) -> None:
    """Whichever column is left out, no record is made, and the error names it."""
    row = await read_row(queue)
    for column in row:
        with pytest.raises((KeyError, TypeError), match=rf"\b{column}\b"):
            record_from_row({name: value for name, value in row.items() if name != column})


async def test_s_s11_a_column_nobody_knows_is_an_error(queue: Queue) -> None:
    """What a query gives beyond the record is a mistake as well."""
    row = await read_row(queue)
    with pytest.raises(TypeError, match="more"):
        record_from_row(row | {"more": 1})


def test_s_s11_no_field_of_a_record_has_a_default() -> None:
    """So a field forgotten by a query cannot arrive as empty."""
    for noun in (Record, Stop, Conversion, OperationBegun, Advance):
        assert [field.name for field in attrs.fields(noun) if field.default is not attrs.NOTHING] == []


async def test_the_query_reads_just_what_a_record_is_made_of(queue: Queue) -> None:
    """Its columns are the record's fields, with the stop flag as the four it is stored in."""
    row = await read_row(queue)
    assert set(row) == FIELDS - {"stop"} | set(STOP)


async def test_every_value_arrives_as_what_it_is(queue: Queue) -> None:
    """Text, numbers, times, lists and nothings come back from the database as they were stored."""
    columns: dict[str, object] = {
        "title": "Заголовок",
        "topics": ["one", "two"],
        "asked_language": "ru",
        "edition": 3,
        "channels": "split",
        "track": 1,
        "hotwords": "Рубеж",
        "source_bytes": 2**40,
        "source_sha256": bytes(range(32)),
        "milestone": Milestone.TRANSCRIBE,
        "lane": "whisper",
        "milestone_since": NOON,
        "milestone_seconds": 1.5,
        "failures": 2,
        "claim_token": uuid4(),
        "claimed_by": "one",
        "claimed_at": NOON,
        "lease_seconds": 60.0,
        "lease_until": NOON + timedelta(minutes=1),
        "audio_path": "records/x/y/audio.w64",
        "declared_seconds": None,
        "decoded_seconds": 36000.25,
        "audio_warnings": ["cut off"],
        "recogniser": "whisper",
        "operation": Jsonb({"slice": 4, "nested": [1, None, "два"]}),
        "found_language": "uk",
        "recognised_seconds": 12.5,
        "recognised_text": "",
    }
    record = record_from_row(await read_row(queue, **columns))
    for name in FIELDS & set(columns):
        match columns[name]:
            case Jsonb(obj=given) | given:
                assert getattr(record, name) == (tuple(given) if isinstance(given, list) else given), name
    assert isinstance(record.milestone, Milestone)
    assert (record.stop, record.deleted_at, record.owner_id) == (None, None, queue.owner)
    for at in (record.created_at, record.milestone_since, record.lease_until):
        assert at is not None
        assert at.utcoffset() == timedelta(0)


async def test_the_stop_flag_is_one_value(queue: Queue) -> None:
    """Its four columns are read as one, with the code as a member of the closed list."""
    stop = {"stop_code": "overdue", "stop_reason": "late", "stopped_at": NOON, "stopped_by": "one"}
    record = record_from_row(await read_row(queue, **stop))
    assert record.stop == Stop(code=StopCode.OVERDUE, reason="late", at=NOON.astimezone(UTC), by="one")


async def test_a_value_nobody_knows_is_an_error(queue: Queue) -> None:
    """A milestone or a stop code of a newer program is not read as something else."""
    row = await read_row(queue)
    with pytest.raises(ValueError, match="beyond"):
        record_from_row(row | {"milestone": "beyond"})
    with pytest.raises(ValueError, match="unheard_of"):
        record_from_row(row | dict.fromkeys(STOP, NOON) | {"stop_code": "unheard_of"})


def test_no_stage_finds_a_column_of_the_owners() -> None:
    """What a stage may write is none of what the owner writes, and is part of the record."""
    found = {
        field.name for findings in (Conversion, OperationBegun, Advance) for field in attrs.fields(findings)
    }
    assert found & OWNERS == set()
    assert found - {"segments", "anew"} <= FIELDS
    assert OWNERS <= FIELDS


@pytest.mark.parametrize("code", StopCode)
def test_every_stop_has_words_for_a_person(code: StopCode) -> None:
    """A sentence of what is the matter and one of what to do, with none of our own terms in it."""
    assert len(re.findall(r"[^.]+\.", code.message)) >= 2
    assert code.value not in code.message
    assert not {"lease", "claim", "milestone_seconds"} & set(code.message.lower().split())

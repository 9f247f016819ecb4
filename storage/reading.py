"""Turns rows into nouns; a column missing from a query is an error, never an empty value."""

from collections.abc import Mapping
from typing import Any

from storage.record import Milestone, Record, Stop, StopCode


def record_from_row(row: Mapping[str, Any]) -> Record:
    """Structure one row of `read_record.sql`; KeyError or TypeError for a column missing or unknown."""
    columns = dict(row)
    stop = stop_from_row(columns)
    for column in ("stop_code", "stop_reason", "stopped_at", "stopped_by"):
        del columns[column]
    columns["milestone"] = Milestone(columns["milestone"])
    columns["topics"] = tuple(columns["topics"])
    columns["audio_warnings"] = tuple(columns["audio_warnings"])
    return Record(stop=stop, **columns)


def stop_from_row(row: Mapping[str, Any]) -> Stop | None:
    """Fold the stop flag's four columns into one value."""
    if row["stop_code"] is None:
        return None
    return Stop(
        code=StopCode(row["stop_code"]), reason=row["stop_reason"], at=row["stopped_at"], by=row["stopped_by"]
    )

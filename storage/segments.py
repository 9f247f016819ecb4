"""Turns rows of segments into nouns."""

from collections.abc import Mapping
from typing import Any

from storage.record import Gap, Segment, Word


def segment_from_row(row: Mapping[str, Any]) -> Segment:
    """Structure one row of `segments_read.sql`, as recognised."""
    return Segment(
        slice=row["slice"],
        number=row["number"],
        start=row["start_seconds"],
        end=row["end_seconds"],
        text=row["text"],
        words=tuple([_word(each) for each in row["words"]]),
        side=row["side"],
        language=row["language"],
        gap=None if row["gap"] is None else Gap(row["gap"]),
    )


def _word(said: Mapping[str, Any]) -> Word:
    return Word(start=said["start"], end=said["end"], text=said["text"], probability=said["probability"])

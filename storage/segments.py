"""Turns rows of segments into nouns."""

from collections.abc import Mapping
from typing import Any

from cattrs import Converter

from storage.record import Gap, Segment, Word

_WORDS = Converter()


def segment_from_row(row: Mapping[str, Any]) -> Segment:
    """Structure one row of `segments_read.sql`, as recognised."""
    return Segment(
        slice=row["slice"],
        number=row["number"],
        start=row["start_seconds"],
        end=row["end_seconds"],
        text=row["text"],
        words=_WORDS.structure(row["words"], tuple[Word, ...]),
        side=row["side"],
        language=row["language"],
        gap=None if row["gap"] is None else Gap(row["gap"]),
    )

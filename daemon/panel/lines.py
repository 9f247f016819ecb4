"""The text of a record as a page shows it: in parts of some lines, each line with its time, side and sign."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from attrs import frozen

from daemon.panel.page import Visit
from daemon.panel.words import Words
from storage.corrections import OwnSegment, count_segments, read_own_segments
from storage.readiness import Readiness

LINES = 100  # of a part: a page stays small, and a browser takes one in at once
_LAST_PART = 10**6


@frozen(kw_only=True)
class Line:
    """A line of the text; `gap` says why there is none."""

    key: str
    start: float
    end: float
    text: str
    who: str
    gap: str
    is_corrected: bool


@frozen(kw_only=True)
class Part:
    """Some lines in a row, the `number`-th part of `parts`."""

    number: int
    parts: int
    lines: Sequence[Line]
    has_sides: bool


async def read_part(visit: Visit, readiness: Readiness) -> Part:
    """Return the part of the text that the address asks for: by `part`, or by the second `at`."""
    asked = visit.request.query_params
    second = _number(asked.get("at", ""))
    count, before = await count_segments(visit.doors.database, readiness.id, second)
    parts = max(1, -(-count // LINES))
    wanted = (before - 1) // LINES if "at" in asked else int(_number(asked.get("part", "")))
    number = min(max(wanted, 0), parts - 1)
    segments = await read_own_segments(
        visit.doors.database, readiness.id, visit.account.id, first=number * LINES, limit=LINES
    )
    lines = tuple(line_of(each, readiness, visit.words) for each in segments)
    has_sides = any(each.recognised.side for each in segments)
    return Part(number=number, parts=parts, lines=lines, has_sides=has_sides)


async def read_words(visit: Visit, record_id: UUID) -> Mapping[str, Any]:
    """Return when each word of a part is said, by the line: pairs of a second and a word."""
    number = min(max(int(_number(visit.request.query_params.get("part", ""))), 0), _LAST_PART)
    segments = await read_own_segments(
        visit.doors.database, record_id, visit.account.id, first=number * LINES, limit=LINES
    )
    return {
        each.key: [[round(word.start, 2), word.text.strip()] for word in each.segment.words]
        for each in segments
    }


def line_of(own: OwnSegment, readiness: Readiness, words: Words) -> Line:
    """Return what is said of a segment."""
    segment = own.recognised
    is_gap = segment.gap is not None and own.corrected is None
    return Line(
        key=own.key,
        start=segment.start,
        end=segment.end,
        text=own.text.strip(),
        who=who_of(segment.side, readiness, words),
        gap=words.say(f"gap.{segment.gap}") if is_gap else "",
        is_corrected=own.corrected is not None,
    )


def who_of(side: str, readiness: Readiness, words: Words) -> str:
    """Return who is on a side, as the owner says; empty where sides are not told apart."""
    if not side:
        return ""
    named = readiness.left_name if side == "left" else readiness.right_name
    return named or words.say(f"side.{side}")


def _number(text: str) -> float:
    """Return a number of an address; 0 for what is none."""
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return min(number, 1e9) if number >= 0 else 0.0

"""`/v1/records/{id}/segments/{segment}`: an owner corrects the text, segment by segment, and may go back."""

import re
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from attrs import frozen
from starlette.responses import JSONResponse, Response

from daemon.intake.editing import LAST_EDITION
from daemon.intake.json_body import JSON_PROBLEMS, read_json
from daemon.intake.operations import Asked, Content, Operation, json_answer
from daemon.intake.options import storable
from daemon.intake.problems import Problem, ProblemResponse
from daemon.intake.queries import Parameter
from daemon.intake.shapes import plain
from storage.account import Account
from storage.corrections import (
    MOST_LETTERS,
    Correction,
    OwnSegment,
    Place,
    correct,
    read_corrections,
    read_own_segment,
)
from storage.database import Database

_KEY = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")

_GIVEN = {
    "type": "object",
    "properties": {
        "text": {
            "type": ["string", "null"],
            "maxLength": MOST_LETTERS,
            "pattern": "^[^\\x00]*$",
            "description": "What was said; null goes back to what was recognised.",
        },
        "edition": {
            "type": "integer",
            "minimum": 0,
            "maximum": LAST_EDITION,
            "description": "The edition of the segment that this is meant for.",
        },
    },
    "required": ["text", "edition"],
    "additionalProperties": False,
}


@frozen(kw_only=True)
class ShownCorrection:
    """What a segment was corrected to once."""

    edition: int
    text: Annotated[str | None, "Null: back to what was recognised."]
    at: datetime
    by: str


@frozen(kw_only=True)
class ShownOwnSegment:
    """A segment with what became of it."""

    id: Annotated[str, "Within its record."]
    start: float
    end: float
    text: Annotated[str, "As its owner has it."]
    recognised: Annotated[str, "As it was recognised."]
    edition: Annotated[int, "Grows with each correction; 0 before the first."]
    corrections: Annotated[tuple[ShownCorrection, ...], "The last first."]


@frozen
class Conflict:
    """The segment was corrected by somebody else meanwhile."""

    now: OwnSegment


async def show_segment(asked: Asked) -> Response:
    """Answer with a segment and its history."""
    own, place = await _own(asked)
    return await _shown(asked, own, place)


async def correct_segment(asked: Asked) -> Response:
    """Write a correction on the edition that the owner saw, and on no other."""
    _, place = await _own(asked)
    text, edition = _read(await read_json(asked.request))
    found = await put_right(asked.doors.database, asked.account, asked.record_id, place, edition, text)
    if isinstance(found, Conflict):
        now = found.now
        detail = f"The segment is at edition {now.edition} by now; look at what is there and correct that."
        current = {"text": now.text, "recognised": now.recognised.text, "edition": now.edition}
        problem = Problem(HTTPStatus.CONFLICT, "edition_conflict", detail)
        return ProblemResponse(problem, current=current)
    return await _shown(asked, found, place)


async def put_right(
    database: Database, account: Account, record_id: UUID, place: Place, edition: int, text: str | None
) -> OwnSegment | Conflict:
    """Correct a segment; who lost the answer and says the same again is answered as the first time."""
    made = await correct(database, record_id, account.id, account.name, place, edition, text)
    own = await read_own_segment(database, record_id, account.id, place)
    if own is None:
        raise no_such_segment()
    if made is None and own.corrected != text:
        return Conflict(own)
    return own


def place_of(key: str) -> Place:
    """Return the place that a segment's name tells; raises Problem for what is no such name."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise no_such_segment()
    return Place(slice=int(match[1]), number=int(match[2]))


def no_such_segment() -> Problem:
    """Return what is said of a segment that there is not, or that one may not see."""
    return Problem(HTTPStatus.NOT_FOUND, "not_found", "There is no such segment in a record of this account.")


def checked_text(text: str) -> str:
    """Return a text that may be kept; raises Problem for one that may not."""
    if len(text) > MOST_LETTERS:
        raise _invalid(f"text has {len(text)} letters, and {MOST_LETTERS} is the most")
    if storable(text) != text:
        raise _invalid("text holds a character that cannot be kept (NUL, or half of a pair)")
    return text


def _read(given: dict[str, Any]) -> tuple[str | None, int]:
    if unknown := sorted(given.keys() - _GIVEN["properties"].keys()):  # type: ignore[attr-defined]  # a schema
        raise _invalid(f"{unknown[0][:100]!a} is no member of a correction (text and edition are)")
    if "text" not in given or not isinstance(given["text"], str | None):
        raise _invalid("text must be a text, or null to go back to what was recognised")
    edition = given.get("edition")
    if type(edition) is not int or not 0 <= edition <= LAST_EDITION:
        raise _invalid("edition must be the edition of the segment that one saw, from 0 on")
    text = given["text"]
    return None if text is None else checked_text(text), edition


def _invalid(fault: str) -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_edit", f"{fault}.")


async def _own(asked: Asked) -> tuple[OwnSegment, Place]:
    place = place_of(asked.request.path_params["segment"])
    own = await read_own_segment(asked.doors.database, asked.record_id, asked.account.id, place)
    if own is None:
        raise no_such_segment()
    return own, place


async def _shown(asked: Asked, own: OwnSegment, place: Place) -> Response:
    corrections = await read_corrections(asked.doors.database, asked.record_id, place)
    shown = ShownOwnSegment(
        id=own.key,
        start=own.recognised.start,
        end=own.recognised.end,
        text=own.text,
        recognised=own.recognised.text,
        edition=own.edition,
        corrections=tuple(map(_shown_correction, corrections)),
    )
    return JSONResponse(plain(shown), headers={"Cache-Control": "private, no-cache"})


def _shown_correction(made: Correction) -> ShownCorrection:
    return ShownCorrection(edition=made.edition, text=made.text, at=made.at, by=made.by)


_SEGMENT = Parameter(
    name="segment", place="path", says="The `id` of a segment of the transcript.", schema={"type": "string"}
)
_SHOWN = {200: json_answer("The segment as it is now.", ShownOwnSegment)}

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/records/{id}/segments/{segment}",
        name="showSegment",
        says="One segment of the text: as recognised, as corrected, and every correction.",
        handler=show_segment,
        parameters=(_SEGMENT,),
        answers=_SHOWN,
        problems=((404, "not_found"),),
    ),
    Operation(
        method="PUT",
        path="/v1/records/{id}/segments/{segment}",
        name="correctSegment",
        says="Correct a segment, on the edition one saw, or go back to what was recognised.",
        handler=correct_segment,
        parameters=(_SEGMENT,),
        body=(Content(media="application/json", shape=_GIVEN),),
        answers=_SHOWN,
        problems=((404, "not_found"), (409, "edition_conflict"), (422, "invalid_edit"), *JSON_PROBLEMS),
    ),
)

"""`GET /v1/records`: one's own records, the newest first, page by page; searched by the words in them."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from uuid import UUID

from attrs import evolve
from starlette.responses import JSONResponse, Response

from daemon.intake.operations import Asked, Operation, json_answer
from daemon.intake.problems import Problem
from daemon.intake.queries import Parameter
from daemon.intake.shapes import ShownPage, plain, shown_listed
from storage.database import Database
from storage.readiness import PageWanted, Place, Readiness, read_page
from storage.record import Milestone

_MOST, _USUALLY = 200, 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ID_BYTES, _CURSOR_BYTES, _CURSOR_LETTERS = 16, 24, 32


async def list_records(asked: Asked) -> Response:
    """Answer with a page of records."""
    query = asked.query
    limit = query.get("limit", _USUALLY)
    milestone, cursor = query.get("milestone"), query.get("cursor")
    wanted = PageWanted(
        milestone=None if milestone is None else Milestone(milestone),
        stopped=query.get("stopped"),
        search=query.get("q") or None,
        before=None if cursor is None else place_of(cursor),
        limit=limit,
    )
    found, next_cursor = await read_listing(asked.doors.database, asked.account.id, wanted)
    shown = ShownPage(records=tuple(shown_listed(each) for each in found), next_cursor=next_cursor)
    return JSONResponse(plain(shown), headers={"Cache-Control": "private, no-cache"})


async def read_listing(
    database: Database, owner_id: UUID, wanted: PageWanted
) -> tuple[Sequence[Readiness], str | None]:
    """Return a page of records, and where the next one begins: None on the last."""
    # One more than is shown tells whether there is a next page.
    found = await read_page(database, owner_id, evolve(wanted, limit=wanted.limit + 1))
    is_last = len(found) <= wanted.limit
    return found[: wanted.limit], None if is_last else cursor_at(found[wanted.limit - 1])


def cursor_at(last: Readiness) -> str:
    """Return where the next page begins, in a form that nobody need understand."""
    moment = (last.created_at - _EPOCH) // _MICROSECOND
    return urlsafe_b64encode(
        moment.to_bytes(_CURSOR_BYTES - _ID_BYTES, "big", signed=True) + last.id.bytes
    ).decode()


def place_of(cursor: str) -> Place:
    """Return the place that a cursor means; raises Problem for one that we never gave."""
    try:
        if len(cursor) != _CURSOR_LETTERS:
            raise ValueError("a cursor of ours has another length")  # noqa: TRY301 - told with the other faults
        raw = urlsafe_b64decode(cursor.encode("ascii"))
        moment, record_id = raw[:-_ID_BYTES], raw[-_ID_BYTES:]
        at = _EPOCH + int.from_bytes(moment, "big", signed=True) * _MICROSECOND
        return Place(at, UUID(bytes=record_id))
    except (ValueError, OverflowError, binascii.Error):
        detail = "The cursor is none of ours; give one that an answer named, or none for the first page."
        raise Problem(HTTPStatus.BAD_REQUEST, "invalid_cursor", detail) from None


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/records",
        name="listRecords",
        says="One's own records, the newest first.",
        handler=list_records,
        parameters=(
            Parameter(
                name="milestone",
                says="Only those at it.",
                schema={"type": "string", "enum": [each.value for each in Milestone]},
            ),
            Parameter(
                name="stopped",
                says="Only those with the stop flag, or without it.",
                schema={"type": "boolean"},
            ),
            Parameter(
                name="q",
                says="Only those with these words, Russian or English, in any of their forms, in title, "
                'description, topics, file name or text; "..." is a phrase, - what must not be there; or.',
                schema={"type": "string", "maxLength": 500},
            ),
            Parameter(
                name="cursor",
                says="`next_cursor` of the page before.",
                schema={"type": "string", "maxLength": 100},
            ),
            Parameter(
                name="limit",
                says=f"How many at most; {_USUALLY} without it.",
                schema={"type": "integer", "minimum": 1, "maximum": _MOST},
            ),
        ),
        answers={200: json_answer("A page of records.", ShownPage)},
        problems=((400, "invalid_cursor"),),
    ),
)

"""What an owner writes about a record, and into its text, from a page: by edition, both versions told."""

from http import HTTPStatus

from starlette.responses import Response

from daemon.intake.correcting import Conflict, checked_text, no_such_segment, place_of, put_right
from daemon.intake.doors import asked_record
from daemon.intake.editing import edit_of, write_edit
from daemon.intake.problems import Problem
from daemon.panel.lines import line_of
from daemon.panel.page import Page, Visit
from daemon.panel.records import RECORDS
from daemon.panel.rows import row_of
from daemon.panel.visiting import go_to
from storage.corrections import read_corrections, read_own_segment

_ONE = RECORDS + "/{id}"
_FIELDS = ("title", "description", "left_name", "right_name")
_MOST_DIGITS = 9


async def write_record(visit: Visit) -> Response:
    """Write title, description, topics and names; show both versions where another edit came first."""
    record_id = asked_record(visit.request)
    found = await visit.doors.polls.look(record_id, visit.account, with_text=False)
    form = visit.form
    given = {name: form.one(name).strip() for name in _FIELDS if form.all(name)}
    given["description"] = given.get("description", "").replace("\r\n", "\n")
    topics = [line.strip() for line in form.one("topics").splitlines() if line.strip()]
    edit = edit_of({**given, "topics": topics, "edition": _edition(visit, least=1)}, None)
    there = await write_edit(visit.doors, visit.account, found, edit)
    if there is None:
        return go_to(f"{RECORDS}/{record_id}")
    mine = {**given, "topics": "\n".join(topics)}
    row = row_of(there, visit.words)
    return visit.page("record_conflict.html", HTTPStatus.CONFLICT, row=row, there=there, mine=mine)


async def show_segment(visit: Visit) -> Response:
    """Show a line with its history, to be corrected without scripts."""
    return await _segment_page(visit)


async def write_segment(visit: Visit) -> Response:
    """Correct a line, or go back to what was recognised."""
    record_id, key = asked_record(visit.request), visit.request.path_params["segment"]
    await visit.doors.polls.look(record_id, visit.account, with_text=False)
    is_way_back = bool(visit.form.one("recognised"))
    text = None if is_way_back else checked_text(visit.form.one("text").replace("\r\n", "\n").strip())
    place, edition = place_of(key), _edition(visit, least=0)
    found = await put_right(visit.doors.database, visit.account, record_id, place, edition, text)
    if isinstance(found, Conflict):
        return await _segment_page(visit, mine=text or "")
    return go_to(f"{RECORDS}/{record_id}?at={found.recognised.start:.2f}#s-{key.replace('.', '-')}")


async def _segment_page(visit: Visit, mine: str | None = None) -> Response:
    record_id, place = asked_record(visit.request), place_of(visit.request.path_params["segment"])
    readiness = await visit.doors.polls.look(record_id, visit.account, with_text=False)
    own = await read_own_segment(visit.doors.database, record_id, visit.account.id, place)
    if own is None:
        raise no_such_segment()
    return visit.page(
        "segment.html",
        HTTPStatus.OK if mine is None else HTTPStatus.CONFLICT,
        row=row_of(readiness, visit.words),
        own=own,
        line=line_of(own, readiness, visit.words),
        corrections=await read_corrections(visit.doors.database, record_id, place),
        mine=mine,
    )


def _edition(visit: Visit, *, least: int) -> int:
    text = visit.form.one("edition")
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) >= least):
        detail = "The form does not say which edition it is meant for; load the page anew."
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_edit", detail)
    return int(text)


PAGES = (
    Page(method="POST", path=f"{_ONE}/edit", handler=write_record),
    Page(method="GET", path=_ONE + "/segments/{segment}", handler=show_segment),
    Page(method="POST", path=_ONE + "/segments/{segment}", handler=write_segment),
)

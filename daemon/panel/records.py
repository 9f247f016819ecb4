"""The list of records: what each is at, found by its words, lifted, stopped and deleted in numbers."""

import re
from collections.abc import Mapping, Sequence
from uuid import UUID

from attrs import frozen
from starlette.responses import Response

from daemon.intake.listing import place_of, read_listing
from daemon.panel.page import Page, Visit
from daemon.panel.rows import Row, row_of
from daemon.panel.visiting import go_to
from storage.readiness import PageWanted, Readiness, read_many, read_page
from storage.record import Milestone
from storage.searching import read_hits

RECORDS = "/records"
SHOWN, SHOWN_FOUND = 50, 20
LONGEST_SEARCH = 500
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER = re.compile(r"[0-9]{1,3}")


@frozen(kw_only=True)
class Filter:
    """A part of the records, by its name in the address."""

    name: str
    milestone: Milestone | None = None
    stopped: bool | None = None


FILTERS: Mapping[str, Filter] = {
    each.name: each
    for each in (
        Filter(name="all"),
        Filter(name="working", milestone=Milestone.TRANSCRIBE, stopped=False),
        Filter(name="done", milestone=Milestone.DONE),
        Filter(name="stopped", stopped=True),
    )
}


async def show_records(visit: Visit) -> Response:
    """Show a page of the list."""
    asked = visit.request.query_params
    search = asked.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH]
    chosen = FILTERS.get(asked.get("show", ""), FILTERS["all"])
    cursor = asked.get("cursor")
    wanted = PageWanted(
        milestone=chosen.milestone,
        stopped=chosen.stopped,
        search=search or None,
        before=None if not cursor else place_of(cursor),
        limit=SHOWN_FOUND if search else SHOWN,
    )
    database = visit.doors.database
    found, next_cursor = await read_listing(database, visit.account.id, wanted)
    hits = await read_hits(database, [each.id for each in found], search) if search and found else {}
    placed = await with_places(visit, found)
    rows = [row_of(each, visit.words, hits) for each in placed]
    return visit.page(
        "records.html",
        rows=rows,
        newest=await newest_of(visit, found, is_first=not (cursor or search or chosen.name != "all")),
        search=search,
        show=chosen.name,
        filters=FILTERS,
        next_cursor=next_cursor,
        is_first=not cursor,
        notice=notice_of(visit),
    )


async def newest_of(visit: Visit, found: Sequence[Readiness] = (), *, is_first: bool = False) -> UUID | str:
    """Return the id of the newest record, empty for none; `found` has it if that is the first page."""
    if not is_first:
        found = await read_page(visit.doors.database, visit.account.id, PageWanted(limit=1))
    return found[0].id if found else ""


async def with_places(visit: Visit, found: Sequence[Readiness]) -> Sequence[Readiness]:
    """Return the same records, those that wait with their places in the queue."""
    waiting = {each.id for each in found if each.stop is None and each.milestone is not Milestone.DONE}
    if not waiting:
        return found
    placed = await read_many(visit.doors.database, waiting, ())
    return [placed.get(each.id, each) for each in found]


@frozen(kw_only=True)
class Notice:
    """What was just done, and which records can be had back."""

    text: str
    undo: Sequence[str] = ()


def notice_of(visit: Visit) -> Notice | None:
    """Return what the address says was done; it is shown, and changes nothing."""
    asked, words = visit.request.query_params, visit.words
    if ids := ids_of(asked.get("deleted", "").split(",")):
        return Notice(text=words.count("records.deleted", len(ids)), undo=[str(each) for each in ids])
    did, number = asked.get("did", ""), asked.get("number", "")
    if did in ("lifted", "halted", "restored") and _NUMBER.fullmatch(number):
        return Notice(text=words.count(f"records.{did}", int(number)))
    if did in ("unlifted", "unhalted", "unchosen"):
        return Notice(text=words.say(f"records.{did}"))
    return None


def ids_of(texts: Sequence[str]) -> Sequence[UUID]:
    """Return the ids among these texts, as many as a page shows; what is none is left out."""
    return [UUID(text) for text in texts[:SHOWN] if _ID.fullmatch(text)]


def rows_of(visit: Visit, found: Sequence[Readiness]) -> Sequence[tuple[Row, str]]:
    """Return rows with their HTML, as the list has them."""
    rows = [row_of(each, visit.words) for each in found]
    return [(row, visit.fragment("row.html", row=row)) for row in rows]


async def go_home(_: Visit) -> Response:
    """Lead from the bare address to the list."""
    return go_to(RECORDS)


PAGES = (
    Page(method="GET", path="/", handler=go_home),
    Page(method="GET", path=RECORDS, handler=show_records),
)

"""The list while it changes: one stream for a page, which says the rows anew that have changed."""

import json
from collections.abc import Collection, Mapping
from functools import partial
from uuid import UUID

import trio
from starlette.responses import Response

from daemon.intake.streams import EventStream, Say
from daemon.panel.page import Page, Visit
from daemon.panel.records import RECORDS, ids_of, newest_of
from daemon.panel.rows import row_of
from storage.errors import DatabaseUnavailable
from storage.readiness import read_many

# Claims and places in the queue are told to nobody, so a stream looks by itself now and then.
LOOK_SECONDS = 3.0


async def show_live(visit: Visit) -> Response:
    """Say the rows of these records as they change, and that there is a newer record than `newest`."""
    asked = visit.request.query_params
    ids = ids_of(asked.get("ids", "").split(","))
    return EventStream(partial(_talk, visit, ids, asked.get("newest", "")))


async def _talk(visit: Visit, ids: Collection[UUID], newest: str, say: Say) -> None:
    changes, shown = visit.doors.polls.changes, dict[UUID, str]()
    with changes.watching_any(ids) as watch:
        while True:
            change = None if watch is None else watch.next_change
            try:
                if await visit.browsers.account(visit.request) is None:
                    await say("event: over\ndata: {}\n\n")
                    return
                rows, first = await _rows(visit, ids), str(await newest_of(visit))
            except DatabaseUnavailable:
                return  # the page comes again
            words = "".join(_worded(each, html) for each, html in rows.items() if shown.get(each) != html)
            words += "".join(_worded(each, "") for each in shown.keys() - rows.keys())
            shown = dict(rows)
            if first != newest:
                newest, words = first, f"{words}event: newer\ndata: {{}}\n\n"
            await say(words or ": still here\n\n")
            if change is None or changes.is_over:
                return
            with trio.move_on_after(min(LOOK_SECONDS, changes.longest_trust)):
                await change.wait()


async def _rows(visit: Visit, ids: Collection[UUID]) -> Mapping[UUID, str]:
    """Return the rows of those records that the visitor may see, as HTML."""
    if not ids:
        return {}
    found = await read_many(visit.doors.database, ids, ())
    words, mine = visit.words, visit.account.id
    rows = {each.id: row_of(each, words) for each in found.values() if each.owner_id == mine}
    return {record_id: visit.fragment("row.html", row=row) for record_id, row in rows.items()}


def _worded(record_id: UUID, html: str) -> str:
    """Say a row; an empty one is of a record that is gone."""
    return f"event: row\ndata: {json.dumps({'id': str(record_id), 'html': html})}\n\n"


PAGES = (Page(method="GET", path=f"{RECORDS}/live", handler=show_live),)

"""One record: what it is at, its text, and what can be done to it."""

from starlette.responses import Response

from daemon.intake.doors import asked_record
from daemon.panel.page import Page, Visit
from daemon.panel.records import RECORDS
from daemon.panel.rows import row_of
from daemon.transcript import EXPORTERS
from storage.corrections import read_segments


async def show_record(visit: Visit) -> Response:
    """Show a record with the text there is so far."""
    record_id = asked_record(visit.request)
    readiness = await visit.doors.polls.look(record_id, visit.account, with_text=False)
    segments = await read_segments(visit.doors.database, record_id, visit.account.id)
    return visit.page(
        "record.html",
        row=row_of(readiness, visit.words),
        readiness=readiness,
        segments=segments,
        forms=tuple(EXPORTERS),
    )


PAGES = (Page(method="GET", path=RECORDS + "/{id}", handler=show_record),)

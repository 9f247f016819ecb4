"""One record: to be heard and read, what it is at, and what can be done to it."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial

import trio
from attrs import frozen
from starlette.responses import HTMLResponse, JSONResponse, Response

from daemon.intake.doors import asked_record
from daemon.intake.problems import Problem, no_such_record
from daemon.intake.shapes import shown_event
from daemon.intake.streams import EventStream, Say
from daemon.panel.lines import read_part, read_words
from daemon.panel.page import Page, Visit
from daemon.panel.records import RECORDS
from daemon.panel.rows import row_of
from daemon.panel.words import Words
from daemon.transcript import EXPORTERS
from storage.claim import NotFound
from storage.corrections import read_unplaced
from storage.errors import DatabaseUnavailable
from storage.events import Event, read_events
from storage.listening import read_listening
from storage.readiness import Readiness
from storage.record import Milestone

LOOK_SECONDS = 3.0  # claims are told to nobody, so a stream looks by itself now and then
_SHOWN_EVENTS = 200
_UNTOLD = ("claimed", "deferred")  # a long record has hundreds of them, and they say nothing to a person
_ONE = RECORDS + "/{id}"


@frozen(kw_only=True)
class Told:
    """Something that happened, in words."""

    at: datetime
    text: str


async def show_record(visit: Visit) -> Response:
    """Show a record with a part of the text there is so far."""
    readiness = await _look(visit)
    listening = await read_listening(visit.doors.database, readiness.id)
    is_here = readiness.store_id == visit.doors.store.id and readiness.audio_path is not None
    return visit.page(
        "record.html",
        row=row_of(readiness, visit.words),
        readiness=readiness,
        part=await read_part(visit, readiness),
        forms=tuple(EXPORTERS),
        is_partial=readiness.milestone is not Milestone.DONE,
        unplaced=await read_unplaced(visit.doors.database, readiness.id) if readiness.corrections else (),
        audio=_audio(readiness, is_listening=listening.path is not None) if is_here else "",
        events=[event_of(each, visit.words) for each in await _events(visit, readiness)],
        warnings=[each for each in readiness.warnings if visit.words.knows(f"warning.{each}")],
    )


async def show_text(visit: Visit) -> Response:
    """Show a part of the text, for a page that has the others."""
    readiness = await _look(visit)
    part = await read_part(visit, readiness)
    return HTMLResponse(visit.fragment("lines.html", row=row_of(readiness, visit.words), part=part))


async def show_words(visit: Visit) -> Response:
    """Tell when each word of a part is said."""
    readiness = await _look(visit)
    return JSONResponse(await read_words(visit, readiness.id))


async def show_one_live(visit: Visit) -> Response:
    """Say what the record is at as it changes, and that there is more text."""
    readiness = await _look(visit)
    return EventStream(partial(_talk, visit, readiness))


async def _talk(visit: Visit, readiness: Readiness, say: Say) -> None:
    changes, shown, text = visit.doors.polls.changes, "", None
    with changes.watching_any([readiness.id]) as watch:
        while True:
            change = None if watch is None else watch.next_change
            html = visit.fragment("one_state.html", row=row_of(readiness, visit.words), readiness=readiness)
            state_of_text = (readiness.recognised_seconds, readiness.corrections, readiness.milestone)
            words = ""
            if html != shown:
                words += f"event: state\ndata: {json.dumps({'html': html})}\n\n"
            if state_of_text != text:
                facts = {"corrections": readiness.corrections, "edition": readiness.edition}
                words += f"event: text\ndata: {json.dumps(facts)}\n\n"
            shown, text = html, state_of_text
            await say(words or ": still here\n\n")
            if change is None or changes.is_over:
                return
            with trio.move_on_after(min(LOOK_SECONDS, changes.longest_trust)):
                await change.wait()
            try:
                if await visit.browsers.account(visit.request) is None:
                    await say("event: over\ndata: {}\n\n")
                    return
                readiness = await _look(visit)
            except (Problem, DatabaseUnavailable):
                return  # deleted meanwhile, or not to be had just now: the page comes again


async def _look(visit: Visit) -> Readiness:
    record_id = asked_record(visit.request)
    return await visit.doors.polls.look(record_id, visit.account, with_text=False)


async def _events(visit: Visit, readiness: Readiness) -> Sequence[Event]:
    events = await read_events(visit.doors.database, readiness.id, visit.account.id)
    if isinstance(events, NotFound):
        raise no_such_record()
    return [each for each in events if each.kind not in _UNTOLD][-_SHOWN_EVENTS:]


def event_of(event: Event, words: Words) -> Told:
    """Return what happened in words: causes of failures and names of workers are the service owner's."""
    shown = shown_event(event)
    if shown.code is not None:
        text = words.say("event.stopped", why=words.say(f"stop.{shown.code}"))
    else:
        milestone = words.say(f"state.{shown.milestone}")
        text = words.say(f"event.{shown.kind}", milestone=milestone, by=shown.by)
    return Told(at=event.at, text=text)


def _audio(readiness: Readiness, *, is_listening: bool) -> str:
    path = f"/v1/records/{readiness.id}/audio"
    return f"{path}?copy=listening" if is_listening else path


PAGES = (
    Page(method="GET", path=_ONE, handler=show_record),
    Page(method="GET", path=f"{_ONE}/text", handler=show_text),
    Page(method="GET", path=f"{_ONE}/words", handler=show_words),
    Page(method="GET", path=f"{_ONE}/live", handler=show_one_live),
)

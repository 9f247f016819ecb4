"""`GET /v1/records/{id}/events`: what happened to a record; as a list, or live as a stream."""

import json
from functools import partial

import trio
from starlette.responses import JSONResponse, Response

from daemon.intake.conditions import accepts_stream, event_after
from daemon.intake.doors import asker
from daemon.intake.operations import Answer, Asked, Content, Operation
from daemon.intake.problems import Problem, no_such_record
from daemon.intake.queries import Parameter
from daemon.intake.shapes import ShownHistory, plain, shown_event
from daemon.intake.streams import STREAM, EventStream, Say
from storage.claim import NotFound
from storage.errors import DatabaseUnavailable
from storage.events import Event, read_events

LOOK_SECONDS = (
    5.0  # claims are told to nobody, so a stream looks for itself now and then, and shows it is alive
)


async def show_events(asked: Asked) -> Response:
    """Answer with the history, the oldest event first."""
    headers = asked.request.headers
    after = event_after(headers.get("last-event-id"))
    streams = accepts_stream(headers.get("accept", ""))
    events = await _read(asked, after if streams else 0)
    if streams:
        return EventStream(partial(_talk, asked, after, events))
    shown = ShownHistory(events=tuple(shown_event(event) for event in events))
    return JSONResponse(plain(shown), headers={"Cache-Control": "private, no-cache"})


async def _read(asked: Asked, after: int) -> tuple[Event, ...]:
    events = await read_events(asked.doors.database, asked.record_id, asked.account.id, after=after)
    if isinstance(events, NotFound):
        raise no_such_record()
    return events


async def _talk(asked: Asked, after: int, events: tuple[Event, ...], say: Say) -> None:
    changes = asked.doors.polls.changes
    with changes.watching(asked.record_id) as watch:
        while True:
            change = None if watch is None else watch.next_change
            await say("".join(map(_worded, events)) or ": still here\n\n")
            after = events[-1].id if events else after
            if change is None or changes.is_over:
                return  # there is no place to wait: the sender comes again
            with trio.move_on_after(LOOK_SECONDS):
                await change.wait()
            try:
                await asker(asked.request)  # the token may have been revoked meanwhile
                events = await _read(asked, after)
            except (Problem, DatabaseUnavailable):
                return  # whoever comes again is told why


def _worded(event: Event) -> str:
    data = json.dumps(plain(shown_event(event)), ensure_ascii=False)
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n"


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/records/{id}/events",
        name="showEvents",
        says="A record's history, the oldest event first; with Accept: text/event-stream the same, live.",
        handler=show_events,
        parameters=(
            Parameter(
                name="Last-Event-ID",
                place="header",
                says="Of a stream: the last event one has; it goes on after that.",
                schema={"type": "string"},
            ),
        ),
        answers={
            200: Answer(
                says="The history.",
                contents=(
                    Content(media="application/json", shape=ShownHistory),
                    Content(media=STREAM, shape={"type": "string"}),
                ),
            )
        },
        problems=((404, "not_found"),),
    ),
)

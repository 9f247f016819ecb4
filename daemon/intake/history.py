"""`GET /v1/records/{id}/events`: what happened to a record; as a list, or live as a stream."""

import json

import trio
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from daemon.intake.conditions import accepts_stream, event_after
from daemon.intake.doors import asker
from daemon.intake.operations import Answer, Asked, Content, Operation
from daemon.intake.problems import Problem, no_such_record
from daemon.intake.queries import Parameter
from daemon.intake.shapes import ShownHistory, plain, shown_event
from storage.claim import NotFound
from storage.errors import DatabaseUnavailable
from storage.events import Event, read_events

LOOK_SECONDS = (
    5.0  # claims are told to nobody, so a stream looks for itself now and then, and shows it is alive
)
LONGEST_SECONDS = 3600.0  # whoever wants more comes again with Last-Event-ID
_STREAM = "text/event-stream"
_COME_AGAIN = 2000  # milliseconds


async def show_events(asked: Asked) -> Response:
    """Answer with the history, the oldest event first."""
    headers = asked.request.headers
    after = event_after(headers.get("last-event-id"))
    streams = accepts_stream(headers.get("accept", ""))
    events = await _read(asked, after if streams else 0)
    if streams:
        return _Stream(asked, after, events)
    shown = ShownHistory(events=tuple(shown_event(event) for event in events))
    return JSONResponse(plain(shown), headers={"Cache-Control": "private, no-cache"})


async def _read(asked: Asked, after: int) -> tuple[Event, ...]:
    events = await read_events(asked.doors.database, asked.record_id, asked.account.id, after=after)
    if isinstance(events, NotFound):
        raise no_such_record()
    return events


class _Stream(Response):
    """The history as server-sent events, until the sender goes, or the record, or the hour is over."""

    def __init__(self, asked: Asked, after: int, events: tuple[Event, ...]) -> None:
        super().__init__(media_type=_STREAM, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._asked = asked
        self._after = after
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what there is, and go on."""
        del scope
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(start)
        with trio.move_on_after(LONGEST_SECONDS) as lasting:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_end_with_sender, receive, lasting)
                await self._go_on(send)
                nursery.cancel_scope.cancel(reason="there is nothing more to come")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _go_on(self, send: Send) -> None:
        await _say(send, f"retry: {_COME_AGAIN}\n\n")
        changes = self._asked.doors.polls.changes
        with changes.watching(self._asked.record_id) as watch:
            events = self._events
            while True:
                change = None if watch is None else watch.next_change
                await _say(send, "".join(map(_worded, events)) or ": still here\n\n")
                after = events[-1].id if events else self._after
                if change is None or changes.is_over:
                    return  # there is no place to wait: the sender comes again
                with trio.move_on_after(LOOK_SECONDS):
                    await change.wait()
                try:
                    await asker(self._asked.request)  # the token may have been revoked meanwhile
                    events = await _read(self._asked, after)
                except (Problem, DatabaseUnavailable):
                    return  # whoever comes again is told why
                self._after = after


async def _say(send: Send, words: str) -> None:
    await send({"type": "http.response.body", "body": words.encode(), "more_body": True})


def _worded(event: Event) -> str:
    data = json.dumps(plain(shown_event(event)), ensure_ascii=False)
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n"


async def _end_with_sender(receive: Receive, lasting: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    lasting.cancel(reason="the sender has gone")


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
                    Content(media=_STREAM, shape={"type": "string"}),
                ),
            )
        },
        problems=((404, "not_found"),),
    ),
)

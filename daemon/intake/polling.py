"""`GET /v1/records/{id}`: the readiness poll, at once or as soon as something changes."""

import hashlib
import json
from functools import partial
from http import HTTPStatus

import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from daemon.intake.beside import work_beside
from daemon.intake.changes import Watch
from daemon.intake.conditions import asked_wait, none_match
from daemon.intake.doors import asked_record, asker
from daemon.intake.operations import Answer, Asked, Operation, json_answer
from daemon.intake.pace import ask_again_seconds
from daemon.intake.problems import Problem
from daemon.intake.queries import Parameter
from daemon.intake.shapes import ShownRecord, shown_record
from storage.entries import Look
from storage.readiness import Readiness
from storage.record import Milestone


async def show_record(asked: Asked) -> Response:
    """Answer the poll: at once, or with `Prefer: wait` as soon as there is something new."""
    known = asked.request.headers.get("if-none-match")
    seconds = asked_wait(asked.request.headers.getlist("prefer"))
    readiness = await asked.doors.polls.shown_to(
        asked.account, asked.record_id, asked.readiness, with_text=known is None
    )
    waited = False
    if seconds and _is_awaited(readiness, known):
        readiness, waited = await _when_changed(asked, readiness, seconds)
    headers = headers_of(readiness)
    if waited:
        headers["Preference-Applied"] = "wait"
    if not none_match(known, headers["ETag"]):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if readiness.milestone is Milestone.DONE and readiness.text is None:
        readiness = await asked.doors.polls.look(asked.record_id, asked.account)
        headers |= headers_of(readiness)
    return JSONResponse(shown_record(readiness), headers=headers)


def _look(request: Request) -> Look | None:
    """Return what the poll is about; None for what cannot be an id of ours, which is told later."""
    try:
        return Look(asked_record(request), with_text="if-none-match" not in request.headers)
    except Problem:
        return None


def headers_of(readiness: Readiness) -> dict[str, str]:
    """Return what stands beside a shown record."""
    again = ask_again_seconds(readiness)
    return {
        "ETag": etag_of(readiness),
        "Cache-Control": "private, no-cache",
        **({} if again is None else {"Retry-After": str(again)}),
    }


def etag_of(readiness: Readiness) -> str:
    """Return the tag of all that is shown but the place in the queue.

    It begins with the edition. The text itself is no part of it: it comes with the milestone, and is changed
    by its owner alone, which moves the edition.
    """
    shown = shown_record(readiness)
    del shown["text"], shown["progress"]["queue_position"]
    digest = hashlib.blake2b(json.dumps(shown, sort_keys=True).encode(), digest_size=12).hexdigest()
    return f'"{readiness.edition}.{digest}"'


def _is_awaited(readiness: Readiness, known: str | None) -> bool:
    """Tell whether the sender has seen this; with no tag it has, as long as the service goes on with it."""
    if known is None:
        return readiness.milestone is not Milestone.DONE and readiness.stop is None
    return not none_match(known, etag_of(readiness))


async def _when_changed(asked: Asked, seen: Readiness, seconds: float) -> tuple[Readiness, bool]:
    """Return what the record is at once it is shown otherwise or the time is up; tell whether one waited."""
    with asked.doors.polls.changes.watching(seen.id) as watch:
        if watch is None:
            return seen, False
        with trio.CancelScope() as waiting:
            leave = partial(end_with_sender, asked.request, waiting)
            seen = await work_beside(leave, partial(_watch, asked, watch, seen, seconds))
    return seen, True


async def _watch(asked: Asked, watch: Watch, seen: Readiness, seconds: float) -> Readiness:
    changes, before = asked.doors.polls.changes, etag_of(seen)
    until = trio.current_time() + seconds
    while True:
        change, left = watch.next_change, until - trio.current_time()
        found = await asked.doors.polls.look(seen.id, asked.account, with_text=False)
        if etag_of(found) != before or left <= 0 or changes.is_over:
            return found
        with trio.move_on_after(min(left, changes.longest_trust)):
            await change.wait()
        await asker(asked.request)  # a token may have been revoked meanwhile


async def end_with_sender(request: Request, waiting: trio.CancelScope) -> None:
    """Keep no place for somebody who has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    waiting.cancel(reason="the sender has gone")


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/records/{id}",
        name="showRecord",
        says="The readiness poll: what a record is at, and its text once it is done.",
        handler=show_record,
        ahead=_look,
        parameters=(
            Parameter(
                name="If-None-Match",
                place="header",
                says="The ETag of the last answer: 304 if nothing has changed since.",
                schema={"type": "string"},
            ),
            Parameter(
                name="Prefer",
                place="header",
                says="`wait=30`: hold the answer until something changes, so many seconds at most (60).",
                schema={"type": "string"},
            ),
        ),
        answers={
            200: json_answer(
                "The record.",
                ShownRecord,
                {
                    "ETag": "Of all that is shown but the place in the queue.",
                    "Retry-After": "Seconds until there should be something new; none once done or stopped.",
                    "Preference-Applied": "`wait`, where the answer was held.",
                },
            ),
            304: Answer(says="Nothing has changed."),
        },
        problems=((404, "not_found"),),
    ),
)

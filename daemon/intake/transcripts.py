"""`GET /v1/records/{id}/transcript`: the segments, or the text as a file of the form that is asked for."""

from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import quote

import trio
from attrs import frozen
from starlette.responses import Response

from daemon.intake.conditions import none_match
from daemon.intake.operations import Answer, Asked, Content, Operation
from daemon.intake.polling import headers_of
from daemon.intake.problems import Problem
from daemon.intake.queries import Parameter
from daemon.transcript import EXPORTERS
from storage.corrections import read_segments
from storage.readiness import Readiness
from storage.record import Gap, Milestone

_MEDIA = {
    "txt": "text/plain; charset=utf-8",
    "srt": "application/x-subrip; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "json": "application/json",
}
_LONGEST_NAME = 150
_RECOGNISED = "recognised"
# A transcript of many hours takes a moment, which others need not wait for.
_THREADS = trio.CapacityLimiter(2)


@frozen(kw_only=True)
class ShownWord:
    """A word with its time, in seconds from the start of the recording."""

    start: float
    end: float
    text: str
    probability: float


@frozen(kw_only=True)
class ShownSegment:
    """A piece of text with its time, in seconds from the start of the recording."""

    id: Annotated[str, "Within its record: what it is corrected by."]
    start: float
    end: float
    text: str
    side: Annotated[str | None, "`left` or `right`, where the sides of a call are told apart."]
    gap: Annotated[Gap | None, "Why there is no text though somebody speaks; `[…]` in the other forms."]
    words: Annotated[tuple[ShownWord, ...], "None where the recogniser does not tell words apart."]


@frozen(kw_only=True)
class ShownTranscript:
    """The text in its segments."""

    version: Annotated[int, "Of this form."]
    id: str
    filename: str
    title: str
    left_name: str
    right_name: str
    language: str | None
    audio_seconds: float | None
    recognised_seconds: Annotated[float, "Less than the audio's while the transcript is partial."]
    partial: bool
    warnings: tuple[str, ...]
    text: str
    segments: tuple[ShownSegment, ...]


async def show_transcript(asked: Asked) -> Response:
    """Answer with the segments as JSON."""
    return await _answer(asked, "json", as_file=False)


async def show_transcript_file(asked: Asked) -> Response:
    """Answer with a file."""
    form = asked.request.path_params["form"]
    if form not in EXPORTERS:
        detail = f"There is no transcript of this form; there are {', '.join(EXPORTERS)}."
        raise Problem(HTTPStatus.NOT_FOUND, "no_such_form", detail)
    return await _answer(asked, form, as_file=True)


async def _answer(asked: Asked, form: str, *, as_file: bool) -> Response:
    readiness = await asked.doors.polls.look(asked.record_id, asked.account, with_text=False)
    is_partial = readiness.milestone is not Milestone.DONE
    shown = headers_of(readiness)
    if is_partial and not asked.query.get("partial"):
        raise _not_ready(readiness, shown.get("Retry-After"))
    which = f".{_RECOGNISED}" if asked.query.get("text") == _RECOGNISED else ""
    headers = {**shown, "ETag": f'{shown["ETag"][:-1]}.{form}{which}"'}
    if as_file:
        headers["Content-Disposition"] = disposition(readiness, form)
    if not none_match(asked.request.headers.get("if-none-match"), headers["ETag"]):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    segments = await read_segments(
        asked.doors.database,
        readiness.id,
        asked.account.id,
        recognised=asked.query.get("text") == _RECOGNISED,
    )
    text = await trio.to_thread.run_sync(
        EXPORTERS[form], segments, _about(readiness, is_partial), limiter=_THREADS
    )
    return Response(text.encode("utf-8", "replace"), headers={**headers, "Content-Type": _MEDIA[form]})


def _about(readiness: Readiness, is_partial: bool) -> dict[str, object]:  # noqa: FBT001 - what it is about
    return {
        "id": str(readiness.id),
        "filename": readiness.filename,
        "title": readiness.title,
        "left_name": readiness.left_name,
        "right_name": readiness.right_name,
        "language": readiness.found_language or readiness.asked_language,
        "audio_seconds": readiness.audio_seconds,
        "recognised_seconds": readiness.recognised_seconds,
        "partial": is_partial,
        "warnings": readiness.warnings,
    }


def disposition(readiness: Readiness, form: str) -> str:
    """Return a header that has the answer saved under the recording's name, whatever that may hold."""
    stem = PurePosixPath(readiness.filename.replace("\\", "/")).stem or "transcript"
    kept = "".join(letter if letter.isprintable() else "_" for letter in stem)[:_LONGEST_NAME]
    return f"attachment; filename*=UTF-8''{quote(f'{kept}.{form}', safe='', errors='replace')}"


def _not_ready(readiness: Readiness, again: str | None) -> Problem:
    if readiness.stop is not None:
        detail = f"The record is stopped at {readiness.milestone}: {readiness.stop.code.message}"
    else:
        detail = f"The record is at {readiness.milestone} and has no whole text yet; ask again later."
    return Problem(
        HTTPStatus.CONFLICT,
        "not_ready",
        f"{detail} What there is so far comes with ?partial=true.",
        headers={} if again is None else {"Retry-After": again},
    )


_PARTIAL = Parameter(
    name="partial", says="Also while it is not whole: what there is so far.", schema={"type": "boolean"}
)
_WHICH = Parameter(
    name="text",
    says="Which: as the owner corrected it, `own`, unless said otherwise, or as `recognised`.",
    schema={"type": "string", "enum": ["own", _RECOGNISED]},
)
_HEADERS = {"ETag": "Of this form of the text."}
_PROBLEMS = ((404, "not_found"), (409, "not_ready"))
_UNCHANGED = Answer(says="Nothing has changed.")

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/records/{id}/transcript",
        name="showTranscript",
        says="The segments of the text, with the words where the recogniser tells them apart.",
        handler=show_transcript,
        parameters=(_PARTIAL, _WHICH),
        answers={
            200: Answer(
                says="The transcript.",
                contents=(Content(media="application/json", shape=ShownTranscript),),
                headers=_HEADERS,
            ),
            304: _UNCHANGED,
        },
        problems=_PROBLEMS,
    ),
    Operation(
        method="GET",
        path="/v1/records/{id}/transcript.{form}",
        name="showTranscriptFile",
        says="The text as a file: txt, srt, vtt, tsv or json.",
        handler=show_transcript_file,
        parameters=(
            Parameter(
                name="form",
                place="path",
                says="Its form.",
                schema={"type": "string", "enum": list(EXPORTERS)},
            ),
            _PARTIAL,
            _WHICH,
        ),
        answers={
            200: Answer(
                says="The file.",
                contents=tuple(
                    Content(
                        media=media.partition(";")[0],
                        shape=ShownTranscript if form == "json" else {"type": "string"},
                    )
                    for form, media in _MEDIA.items()
                ),
                headers={**_HEADERS, "Content-Disposition": "The name to save it under."},
            ),
            304: _UNCHANGED,
        },
        problems=(*_PROBLEMS, (404, "no_such_form")),
    ),
)

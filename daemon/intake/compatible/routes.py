"""`/v1/audio/transcriptions`, `/v1/audio/translations`, `/v1/models`: the same intake, then the answer.

The call waits for its record. Whoever sends the same recording with the same options again, as clients do by
themselves after a timeout, is answered from the record that is there already.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import UUID

import trio
from attrs import frozen
from starlette.responses import JSONResponse, Response

from daemon.intake.beside import work_beside
from daemon.intake.compatible.forms import MEDIA, answered
from daemon.intake.compatible.streaming import TranscriptStream
from daemon.intake.compatible.waiting import outcome
from daemon.intake.compatible.wish import ALIAS, FORMS, GRANULARITIES, Wish, read_wish
from daemon.intake.doors import open_doors
from daemon.intake.multipart import Form, boundary_of
from daemon.intake.operations import Answer, Asked, Content, Operation, json_answer
from daemon.intake.options import MOST_LETTERS, Options
from daemon.intake.polling import end_with_sender
from daemon.intake.problems import Problem
from daemon.intake.queries import Parameter
from daemon.intake.receiving import Sink, receive_form
from daemon.intake.service import inside_of
from daemon.intake.submitting import BODY_PROBLEMS, take_in
from storage.corrections import read_segments

_SINCE = int(time.time())
_BINARY = {"type": "string", "format": "binary"}
_THREADS = trio.CapacityLimiter(2)


@frozen(kw_only=True)
class ShownModel:
    """A model, as OpenAI's clients list it."""

    id: str
    object: Literal["model"]
    created: Annotated[int, "Since when this process offers it, in seconds since 1970."]
    owned_by: str


@frozen(kw_only=True)
class ShownModels:
    """Every model."""

    object: Literal["list"]
    data: tuple[ShownModel, ...]


async def transcribe(asked: Asked) -> Response:
    """Receive a recording, wait for its text, and answer with it."""
    return await _text_of(asked, translated=False)


async def translate(asked: Asked) -> Response:
    """Do the same, with the text in English."""
    return await _text_of(asked, translated=True)


async def _text_of(asked: Asked, *, translated: bool) -> Response:
    doors = open_doors(asked.request)
    wishes: list[Wish] = []
    record_id = await take_in(
        doors, asked.account, partial(_bring, asked, wishes, translated), same_again=True
    )
    [wish] = wishes
    headers = {"Rubezh-Record": str(record_id)}
    until = trio.current_time() + doors.settings.answer_seconds
    if wish.streamed:
        return TranscriptStream(asked, record_id, headers, until)
    with trio.CancelScope() as waiting:
        leave = partial(end_with_sender, asked.request, waiting)
        try:
            return await work_beside(leave, partial(_answer, asked, wish, record_id, until))
        except Problem as problem:
            problem.headers |= headers
            raise
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)  # who would read more has gone


async def list_models(asked: Asked) -> Response:
    """Answer with the models that may be named."""
    return JSONResponse(
        {"object": "list", "data": [_model(name) for name in inside_of(asked.request).models]}
    )


async def show_model(asked: Asked) -> Response:
    """Answer with one of them."""
    name = asked.request.path_params["model"]
    if name not in inside_of(asked.request).models:
        raise Problem(HTTPStatus.NOT_FOUND, "model_not_found", f"There is no model {name[:100]!a}.")
    return JSONResponse(_model(name))


async def _bring(asked: Asked, wishes: list[Wish], translated: bool, sink: Sink) -> Options:  # noqa: FBT001 - bound by place
    boundary = boundary_of(asked.request.headers.get("content-type"))
    if boundary is None:
        detail = "Send the recording as multipart/form-data, its part named file, with the name of a model."
        raise Problem(HTTPStatus.BAD_REQUEST, "malformed_form", detail)
    form = Form(boundary)
    await receive_form(asked.request, form, sink, asked.doors.settings.largest_bytes)
    wish = read_wish(form.fields, form.filename, inside_of(asked.request).models, translated=translated)
    wishes.append(wish)
    return wish.options


async def _answer(asked: Asked, wish: Wish, record_id: UUID, until: float) -> Response:
    readiness = await outcome(asked, record_id, until)
    segments = await read_segments(asked.doors.database, record_id, asked.account.id)
    text = await trio.to_thread.run_sync(answered, wish, readiness, segments, limiter=_THREADS)
    return Response(
        text.encode("utf-8", "replace"),
        headers={"Content-Type": MEDIA[wish.form], "Rubezh-Record": str(record_id)},
    )


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _SINCE, "owned_by": "rubezh"}


_FIELDS: dict[str, Any] = {
    "file": _BINARY,
    "model": {"type": "string", "description": f"`{ALIAS}`, or a name that /v1/models has."},
    "language": {"type": "string", "description": "What is spoken, such as `ru`; found out without it."},
    "prompt": {
        "type": "string",
        "maxLength": MOST_LETTERS["hotwords"],
        "description": "Words and names that are likely to be said.",
    },
}
_FORM = {
    "type": "object",
    "properties": {
        **_FIELDS,
        "response_format": {"type": "string", "enum": list(FORMS)},
        "timestamp_granularities[]": {
            "type": "array",
            "items": {"type": "string", "enum": list(GRANULARITIES)},
        },
        "stream": {"type": "boolean", "description": "Each piece as soon as it is there (json and text)."},
    },
    "required": ["file", "model"],
}
_RECORD = {"Rubezh-Record": "The record's id: whoever loses this answer asks for it there."}


def _hand_in(path: str, name: str, says: str, handler: Callable[[Asked], Awaitable[Response]]) -> Operation:
    return Operation(
        method="POST",
        path=path,
        name=name,
        says=says,
        handler=handler,
        body=(Content(media="multipart/form-data", shape=_FORM),),
        answers={
            200: Answer(
                says="The text.",
                contents=(
                    Content(media="application/json", shape={"type": "object", "required": ["text"]}),
                    *(
                        Content(media=media, shape={"type": "string"})
                        for media in ("text/plain", "application/x-subrip", "text/vtt", "text/event-stream")
                    ),
                ),
                headers=_RECORD,
            ),
        },
        problems=(
            *BODY_PROBLEMS,
            (400, "invalid_value"),
            (400, "missing_required_parameter"),
            (404, "model_not_found"),
            (504, "still_running"),
        ),
        tag="openai",
        tells="openai",
    )


OPERATIONS = (
    _hand_in(
        "/v1/audio/transcriptions",
        "transcribe",
        "As OpenAI's: hand in a recording and wait for its text.",
        transcribe,
    ),
    _hand_in(
        "/v1/audio/translations",
        "translate",
        "As OpenAI's: the same, with the text in English.",
        translate,
    ),
    Operation(
        method="GET",
        path="/v1/models",
        name="listModels",
        says="As OpenAI's: the models that may be named.",
        handler=list_models,
        answers={200: json_answer("The models.", ShownModels)},
        tag="openai",
        tells="openai",
    ),
    Operation(
        method="GET",
        path="/v1/models/{model}",
        name="showModel",
        says="As OpenAI's: one model.",
        handler=show_model,
        parameters=(Parameter(name="model", place="path", says="Its name.", schema={"type": "string"}),),
        answers={200: json_answer("The model.", ShownModel)},
        problems=((404, "model_not_found"),),
        tag="openai",
        tells="openai",
    ),
)

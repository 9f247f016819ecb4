"""A small JSON object as a request's body: bounded in bytes and in time, and read before anything is done."""

import json
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import trio
from starlette.requests import Request

from daemon.intake.problems import Problem

JSON_KINDS = ("application/json", "application/merge-patch+json")
JSON_PROBLEMS = ((400, "malformed_json"), (408, "too_slow"), (413, "too_large"), (415, "not_json"))
_MOST_BYTES = 128 * 1024
_PATIENCE_SECONDS = 60.0


async def read_json(request: Request) -> dict[str, Any]:
    """Return the object in a request's body; raises Problem for what is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in JSON_KINDS:
        detail = "An edit is sent as JSON; say so with Content-Type: application/json."
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "not_json", detail)
    try:
        given = json.loads((await _body(request)).decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise _malformed("it is no JSON in UTF-8") from None
    if not isinstance(given, dict):
        raise _malformed("it must be an object")
    return given


async def _body(request: Request) -> bytes:
    """Return a body that need not be long, if it comes within its time."""
    body = bytearray()
    with trio.move_on_after(_PATIENCE_SECONDS):
        async with aclosing(request.stream()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > _MOST_BYTES:
                    detail = f"An edit may have {_MOST_BYTES} bytes; send a shorter one."
                    raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", detail)
        return bytes(body)
    detail = f"The edit did not come within {_PATIENCE_SECONDS:.0f} seconds; send it again."
    raise Problem(HTTPStatus.REQUEST_TIMEOUT, "too_slow", detail)


def _malformed(cause: str) -> Problem:
    detail = f"The edit cannot be read: {cause}."
    return Problem(HTTPStatus.BAD_REQUEST, "malformed_json", detail)


def _no_number(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")

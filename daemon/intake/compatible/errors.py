"""Errors as OpenAI's clients read them. No I/O."""

from http import HTTPStatus
from typing import Annotated, Any

from attrs import frozen

_OURS = 500
_PATHS = ("/v1/audio/", "/v1/models")


@frozen(kw_only=True)
class OpenAIErrorBody:
    """What went wrong, in OpenAI's words."""

    message: Annotated[str, "Cause and remedy in a sentence."]
    type: Annotated[str, "Whose fault it is, roughly."]
    param: str | None
    code: Annotated[str, "The stable word for it, as everywhere here."]


@frozen(kw_only=True)
class OpenAIError:
    """An error of the OpenAI-compatible routes."""

    error: OpenAIErrorBody


def speaks_openai(path: str) -> bool:
    """Tell whether a path is of those that answer as OpenAI does."""
    return path.startswith(_PATHS)


def openai_error(status: int, code: str, detail: str) -> dict[str, Any]:
    """Return an error as plain data."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        kind = "rate_limit_exceeded"
    else:
        kind = "server_error" if status >= _OURS else "invalid_request_error"
    return {"error": {"message": detail, "type": kind, "param": None, "code": code}}

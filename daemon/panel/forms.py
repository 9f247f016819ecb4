"""A form as it comes from a browser: small, bounded, and read before anything is done."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import parse_qsl

from attrs import frozen
from starlette.requests import Request

from daemon.intake.body import Body
from daemon.intake.problems import Problem

_MOST_BYTES, _MOST_FIELDS = 256 * 1024, 1000
_KIND = "application/x-www-form-urlencoded"


@frozen
class Form:
    """Names and texts, as they were sent."""

    fields: Mapping[str, Sequence[str]]

    def one(self, name: str) -> str:
        """Return the first text of that name; empty for none."""
        return next(iter(self.fields.get(name, ())), "")

    def all(self, name: str) -> Sequence[str]:
        """Return every text of that name."""
        return self.fields.get(name, ())


async def read_form(request: Request) -> Form:
    """Return the form in a request's body; raises Problem for what is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = Body(request, _MOST_BYTES, _too_large)
    content = bytearray()
    while chunk := await body.read():
        content += chunk
    if content and kind != _KIND:
        raise _unreadable()
    try:
        pairs = parse_qsl(
            content.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise _unreadable() from None
    fields: dict[str, list[str]] = {}
    for name, text in pairs:
        if "\0" in text:
            raise _unreadable()
        fields.setdefault(name, []).append(text)
    return Form(fields)


def _too_large(most: int) -> Problem:
    detail = f"A form may have {most} bytes; send less at once."
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", detail)


def _unreadable() -> Problem:
    detail = "The form cannot be read; open the page anew and try again."
    return Problem(HTTPStatus.BAD_REQUEST, "unreadable_form", detail)

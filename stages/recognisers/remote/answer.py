"""The answer to a call: a status and a bounded body, read in whatever form it came. No I/O."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from attrs import field, frozen

from stages.recognisers.remote.cleaning import Secret, cleaned, words_of_page
from stages.recognisers.remote.errors import BadAnswer

LONGEST_PAUSE_SECONDS: Final = 3600.0
_LAST_GOOD, _FIRST_GOOD = 299, 200
_WORDS = ("message", "detail", "error_description", "description", "title", "error", "reason", "msg")


@frozen(kw_only=True)
class Answer:
    """What a service answered; header names are in small letters, `secrets` what its words may not show."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    secrets: tuple[Secret, ...] = field(default=(), repr=False)

    @property
    def is_good(self) -> bool:
        """Tell whether what was asked for was done."""
        return _FIRST_GOOD <= self.status <= _LAST_GOOD

    @property
    def media(self) -> str:
        """The media type it says it has, without parameters; empty where it says none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_page(self) -> bool:
        """Tell whether it is a web page, as proxies and sign-in forms answer."""
        return self.media == "text/html" or self.body.lstrip()[:15].lower().startswith(
            (b"<!doctype", b"<html")
        )

    @property
    def text(self) -> str:
        """The body as UTF-8; what is not becomes a mark."""
        return self.body.decode("utf-8-sig", "replace")

    def json(self) -> Any:  # noqa: ANN401 - whatever JSON may hold
        """Return the body's JSON; raises BadAnswer for anything else."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError) as error:
            raise BadAnswer(f"the answer is no JSON ({self.said})") from error

    @property
    def said(self) -> str:
        """What it says of itself, cleaned: the status, and an error's own words where there are any."""
        words = cleaned(_words_of(self), self.secrets)
        return f"{self.status}: {words}" if words else f"{self.status}"

    def retry_after(self, now: datetime | None = None) -> float | None:
        """Return the seconds it asks to wait, within reason; None where it does not ask."""
        asked = self.headers.get("retry-after", "").strip()
        seconds = _seconds_of(asked, now or datetime.now(UTC))
        return None if seconds is None else min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS)


def member(value: Any, *path: str | int) -> Any:  # noqa: ANN401 - whatever JSON may hold
    """Return what stands at a place of some JSON; None where there is no such place."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _seconds_of(asked: str, now: datetime) -> float | None:
    try:
        return float(asked) if asked.replace(".", "", 1).isdecimal() else _until(asked, now)
    except (ValueError, OverflowError):
        return None


def _until(asked: str, now: datetime) -> float:
    moment = parsedate_to_datetime(asked)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()


def _words_of(answer: Answer) -> str:
    if answer.is_page:
        return words_of_page(answer.text)
    try:
        said = json.loads(answer.text)
    except (ValueError, RecursionError):
        return answer.text
    return _words_in(said)


def _words_in(said: Any) -> str:  # noqa: ANN401 - whatever JSON may hold
    """Return the first words for a person that some JSON has, with its code where there is one."""
    match said:
        case str():
            return said
        case list() if said:
            return _words_in(said[0])
        case dict():
            for name in _WORDS:
                if words := _words_in(said.get(name)):
                    code = said.get("code")
                    return f"{words} ({code})" if isinstance(code, str) and code else words
        case _:
            pass
    return ""

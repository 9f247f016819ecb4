"""A service's own words, fit for a log, an event and a page: bounded, on one line, and without secrets."""

import html
import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from attrs import field, frozen

MOST_LETTERS: Final = 300
HIDDEN: Final = "(secret)"

_LEAST_SECRET = 4  # a shorter one would tear holes into every sentence
# What keys look like, also those that a service shows in part, or that are not ours at all.
_KEYS = re.compile(
    r"\b(?:bearer|basic|api-key)\s+[\w.~+/*=-]{4,}|\bsk-[\w*.-]{4,}|\beyJ[\w-]{6,}\.[\w.-]+|\bt1\.[\w.*-]{6,}",
    re.IGNORECASE,
)
_NOT_SEEN = re.compile(r"<(script|style|head)\b.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title\b[^>]*>(.*?)</title\s*>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")


@frozen
class Secret:
    """What opens a service. Nothing that prints or logs it shows it."""

    value: str = field(repr=False)

    def __str__(self) -> str:
        """Hide it."""
        return HIDDEN if self.value else ""

    def __bool__(self) -> bool:
        """Tell whether there is one."""
        return bool(self.value)


def cleaned(text: str, secrets: Iterable[Secret] = (), most: int = MOST_LETTERS) -> str:
    """Return the words without the secrets, in whatever dress these came, on one line and not too long."""
    for secret in secrets:
        for shape in _shapes(secret.value):
            text = text.replace(shape, HIDDEN)
    text = _KEYS.sub(HIDDEN, text)
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def words_of_page(page: str) -> str:
    """Return what a person would read of a web page: its title, or all of its text."""
    title = _TITLE.search(page)
    text = title[1] if title and title[1].strip() else _TAG.sub(" ", _NOT_SEEN.sub(" ", page))
    return html.unescape(text)


def _shapes(secret: str) -> list[str]:
    if len(secret) < _LEAST_SECRET:
        return []
    encoded = b64encode(secret.encode()).decode()
    return sorted({secret, quote(secret, safe=""), html.escape(secret), encoded}, key=len, reverse=True)

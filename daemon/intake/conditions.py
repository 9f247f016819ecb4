"""What a request asks under conditions: entity tags, the wait it would accept, the part it wants. No I/O."""

import re
from collections.abc import Iterable, Sequence

from attrs import frozen

LONGEST_WAIT = 60  # seconds
_ETAG = re.compile(r'\s*(?P<weak>W/)?"(?P<tag>[\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)')
_EDITION = re.compile(r"(?P<edition>[1-9][0-9]{0,9})(?:\..*)?")
_LAST_EDITION = 2**31 - 1
_MOST_EVENT_DIGITS = 18
_WAIT = re.compile(r"\s*wait\s*=\s*\"?([0-9]{1,9})\"?\s*(?:;.*)?", re.IGNORECASE)
_RANGE = re.compile(r"bytes=\s*(?P<first>[0-9]{0,19})-(?P<last>[0-9]{0,19})\s*", re.IGNORECASE)


def none_match(header: str | None, etag: str) -> bool:
    """Tell whether If-None-Match lets a full answer through: it does unless it names this very tag, or *."""
    if header is None:
        return True
    if header.strip() == "*":
        return False
    return etag.removeprefix("W/").strip('"') not in [tag for _, tag in _etags(header)]


def asked_edition(header: str) -> int | None:
    """Return the edition that If-Match names: 0 for one there cannot be, None for * (any).

    A tag of ours begins with the edition, and only that part counts: the rest moves with the service's own
    work, which no edit conflicts with.
    """
    if header.strip() == "*":
        return None
    for weak, tag in _etags(header):
        match = _EDITION.fullmatch(tag)
        if match and not weak and int(match["edition"]) <= _LAST_EDITION:
            return int(match["edition"])
    return 0


def asked_wait(headers: Iterable[str]) -> int:
    """Return how many seconds Prefer would have one wait (RFC 7240), LONGEST_WAIT at most; 0 for not at all.

    What cannot be understood is passed over, as the RFC has it; of several the first counts.
    """
    for preference in ",".join(headers).split(","):
        if match := _WAIT.fullmatch(preference):
            return min(int(match[1]), LONGEST_WAIT)
    return 0


@frozen
class Part:
    """A part of a file: from byte `first` on, `length` bytes."""

    first: int
    length: int


class NotSatisfiable(Exception):
    """No byte of the file is in the range that is asked for."""


def asked_part(header: str | None, size: int) -> Part | None:
    """Return the part that Range asks for; None when the whole file is to be sent.

    A header that is no single range of bytes is passed over, as RFC 9110 allows: several parts in one answer
    are never sent. Raises NotSatisfiable for a range that begins past the end.
    """
    match = _RANGE.fullmatch(header or "")
    if match is None or not (match["first"] or match["last"]):
        return None
    if not match["first"]:
        length = min(int(match["last"]), size)
        if not length:
            raise NotSatisfiable
        return Part(size - length, length)
    first = int(match["first"])
    last = min(int(match["last"]), size - 1) if match["last"] else size - 1
    if match["last"] and int(match["last"]) < first:
        return None  # no valid range at all
    if first >= size:
        raise NotSatisfiable
    return Part(first, last - first + 1)


def _etags(header: str) -> Sequence[tuple[bool, str]]:
    found, place = [], 0
    while match := _ETAG.match(header, place):
        found.append((match["weak"] is not None, match["tag"]))
        if match.end() == place:
            break
        place = match.end()
    return found


def accepts_stream(accept: str) -> bool:
    """Tell whether server-sent events are asked for by name."""
    kinds = (each.partition(";")[0].strip().lower() for each in accept.split(","))
    return "text/event-stream" in kinds


def event_after(last: str | None) -> int:
    """Return the id of the event that somebody has already; 0 for none, and for what is no id."""
    text = (last or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_EVENT_DIGITS else 0

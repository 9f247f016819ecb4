"""The journal's catalog: an id for each kind of event, and the text that `journalctl -x` puts below an entry.

`python -m daemon.catalogue` prints it; `systemd/rubezh.catalog` is what it printed, and installed as it is.
Source: https://systemd.io/CATALOG/
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Final
from uuid import UUID, uuid5

from daemon.happenings import EVENTS
from daemon.remedies import REMEDIES, STOP_REMEDIES
from storage.record import StopCode

_OURS: Final = UUID("5b0f2f5e-3a52-4b3e-9f0e-6d2c9f3f7c1a")
_WIDTH: Final = 78
STOPPED: Final = "record.stopped"

_HEAD = """\
# Messages of Rubezh, for `journalctl -x`. Made by: python -m daemon.catalogue
"""


def message_id(event: str, code: object = None) -> str:
    """Return the MESSAGE_ID of an event; a stop has one for each `code`."""
    kind = f"{event}.{code}" if event == STOPPED and code is not None else event
    return uuid5(_OURS, kind).hex


def catalogue() -> str:
    """Return the whole catalog, in the order of the events."""
    return _HEAD + "".join(_entries())


def _entries() -> Iterator[str]:
    for event, meaning in EVENTS.items():
        if event == STOPPED:
            for code in StopCode:
                yield _entry(message_id(event, code), event, f"{meaning} ({code})", STOP_REMEDIES[code])
        yield _entry(message_id(event), event, meaning, REMEDIES.get(event, ""))


def _entry(message: str, event: str, meaning: str, remedy: str) -> str:
    paragraphs = [
        f"{meaning[0].upper()}{meaning[1:]}.",
        remedy and f"What to do: {remedy}",
        _way(event),
    ]
    body = "\n\n".join(_filled(each) for each in paragraphs if each)
    return (
        f"\n-- {message}\n"
        f"Subject: Rubezh: {event}\n"
        "Defined-By: Rubezh\n"
        "Documentation: man:rubezh(1)\n"
        f"\n{body}\n"
    )


def _way(event: str) -> str:
    """Say how to see what else belongs to it."""
    if event.startswith(("record.", "claim.", "settle.", "slice.", "audio.")):
        return "The whole story of the record: journalctl RUBEZH_RECORD=ID"
    return ""


def _filled(paragraph: str) -> str:
    """Wrap it; journalctl puts the entry's own record in."""
    with_record = re.sub(r"\bID\b", "@RUBEZH_RECORD@", paragraph)
    return textwrap.fill(with_record, _WIDTH, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.stdout.write(catalogue())

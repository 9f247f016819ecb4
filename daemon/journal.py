"""What the service says: structlog to journald, to a terminal, or as JSON lines.

An entry is one event of `daemon.happenings` and its facts. Saying it never raises and never waits: what
journald or a reader cannot take just now is kept for a while, and what is dropped is counted and told.
"""

import atexit
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TextIO

import structlog
import trio
from structlog.processors import CallsiteParameter, CallsiteParameterAdder, TimeStamper
from structlog.typing import Processor

from daemon.catalogue import message_id
from daemon.journald import JOURNAL, JournalSocket, encode, is_stderr_the_journal
from daemon.lines import lines_to
from daemon.outlet import Outlet, Sink
from daemon.repeats import Repeats
from daemon.wording import hide_secrets, other_facts, printable, word_facts

Style = Literal["auto", "journal", "console", "json"]
Level = Literal["debug", "info", "warning", "error"]
Render = Callable[[Mapping[str, Any]], bytes]

IDENTIFIER: Final = "rubezh"

_PRIORITIES: Final = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
_COLOURS: Final = {"debug": "\x1b[2m", "info": "\x1b[32m", "warning": "\x1b[33m"}
_RED, _BOLD, _PLAIN = "\x1b[31m", "\x1b[1m", "\x1b[0m"
_KNOWN_LEVELS: Final = (logging.WARNING, logging.ERROR, logging.CRITICAL)  # below these nothing is heard
_EVENT_WIDTH: Final = 20  # a longer event pushes its own facts aside, nobody else's
_PUSH_SECONDS: Final = 0.5
_PUSH_AGAIN_SECONDS: Final = 0.01  # journald and readers take more as soon as they have read some
_LAST_WORDS_SECONDS: Final = 1.0  # for what waits when the process ends


def configure(style: Style, level: Level, *, stream: TextIO | None = None) -> None:
    """Say from now on everything of `level` and above in `style`, and the libraries' warnings with it.

    `auto` is the journal when stderr leads there, else readable lines; they and JSON go to `stream`,
    by default stderr.
    """
    stream = stream or sys.stderr
    stamp: Processor
    if style == "journal" or (style == "auto" and is_stderr_the_journal(os.environ) and JOURNAL.exists()):
        say_to(JournalSocket(), as_journal_entry, _CALL_SITE, level)
    elif style == "json":
        say_to(lines_to(stream), as_json, TimeStamper(fmt="iso", utc=True), level)
    else:
        stamp = TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False)
        say_to(lines_to(stream), in_colour if stream.isatty() else in_plain, stamp, level)
    _hear_libraries()


def say_to(sink: Sink, render: Render, stamp: Processor, level: Level) -> None:
    """Send every entry of `level` and above to `sink`, rendered by `render`."""
    global _outlet  # noqa: PLW0603 - structlog's own configuration is the process's, and so is where it leads
    _outlet = outlet = Outlet(sink, lambda entries: render(_loss(entries)))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            stamp,
            structlog.processors.format_exc_info,
            hide_secrets,
            lambda _logger, _method, entry: render(entry),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: outlet,
        cache_logger_on_first_use=False,
    )


async def keep_pushing() -> None:
    """Hand on what waits, and tell what was dropped, also when nothing more is said; for ever."""
    pause = _PUSH_SECONDS
    while True:
        await trio.sleep(pause)
        nothing_waits = _outlet is None or _outlet.push()
        pause = _PUSH_SECONDS if nothing_waits else _PUSH_AGAIN_SECONDS


def entries_dropped() -> float:
    """Return how many entries were lost since the start of this process."""
    return 0 if _outlet is None else _outlet.dropped_in_all


@atexit.register
def say_last_words(seconds: float = _LAST_WORDS_SECONDS) -> None:
    """Before the process ends: hand on what waits, for so long at most."""
    until = time.monotonic() + seconds
    while _outlet is not None and not _outlet.push() and time.monotonic() < until:
        time.sleep(0.01)


def as_journal_entry(entry: Mapping[str, Any]) -> bytes:
    """Return the entry for journald: a sentence for a person, and each fact as a field of its own."""
    fields = {
        "MESSAGE": printable(_sentence(entry) + _traceback(entry)),
        "PRIORITY": str(_PRIORITIES[entry["level"]]),
        "SYSLOG_IDENTIFIER": IDENTIFIER,
        "MESSAGE_ID": message_id(str(entry["event"]), entry.get("code")),
        "RUBEZH_EVENT": str(entry["event"]),
    }
    for ours, theirs in (("pathname", "CODE_FILE"), ("lineno", "CODE_LINE"), ("func_name", "CODE_FUNC")):
        if ours in entry:
            fields[theirs] = str(entry[ours])
    for key, text in other_facts(entry).items():
        fields["RUBEZH_" + re.sub(r"[^A-Z0-9_]", "_", key.upper())[:56]] = text
    return encode(fields)


def as_json(entry: Mapping[str, Any]) -> bytes:
    """Return the entry as one line of JSON."""
    ordered = {key: entry[key] for key in ("timestamp", "level", "event")} | dict(entry)
    return json.dumps(ordered, default=str, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def in_plain(entry: Mapping[str, Any]) -> bytes:
    """Return the entry as a line to read; a traceback follows it."""
    head = f"{entry['timestamp']} {entry['level']:<7} {entry['event']:<{_EVENT_WIDTH}}"
    return _line(head, entry)


def in_colour(entry: Mapping[str, Any]) -> bytes:
    """Return the same line for a terminal."""
    colour = _COLOURS.get(entry["level"], _RED)
    event = f"{_BOLD}{entry['event']:<{_EVENT_WIDTH}}{_PLAIN}"
    return _line(f"{entry['timestamp']} {colour}{entry['level']:<7}{_PLAIN} {event}", entry)


class _Library(logging.Handler):
    """Says what a library logs by Python's own means; the same words again only once a minute.

    A machine out of descriptors, say, is told ten times a second by each listener.
    """

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._repeats = Repeats()

    def emit(self, record: logging.LogRecord) -> None:
        """Say it as an event of ours; what cannot be worded goes to stderr, as logging has it."""
        level = max(known for known in _KNOWN_LEVELS if known <= record.levelno)
        try:
            said = record.getMessage()
            repeated = self._repeats.heard((record.name, level, said), time.monotonic())
            if repeated is None:
                return
            structlog.get_logger().log(
                level,
                "library.warned",
                library=record.name,
                said=said,
                exc_info=record.exc_info,
                **({"repeated": repeated} if repeated else {}),
            )
        except Exception:  # noqa: BLE001 - a library must not fail over a log entry of its own
            self.handleError(record)


def _loss(entries: int) -> Mapping[str, Any]:
    stamp = TimeStamper(fmt="iso", utc=True)
    return stamp(None, "warning", {"event": "journal.dropped", "level": "warning", "entries": entries})


def _hear_libraries() -> None:
    root = logging.getLogger()
    root.handlers = [handler for handler in root.handlers if not isinstance(handler, _Library)]
    root.addHandler(_Library(logging.WARNING))
    root.setLevel(logging.WARNING)


def _line(head: str, entry: Mapping[str, Any]) -> bytes:
    return (f"{head} {word_facts(entry)}".rstrip() + printable(_traceback(entry)) + "\n").encode(
        "utf-8", "backslashreplace"
    )


def _sentence(entry: Mapping[str, Any]) -> str:
    return f"{entry['event']} {word_facts(entry)}".rstrip()


def _traceback(entry: Mapping[str, Any]) -> str:
    return f"\n{entry['exception']}" if entry.get("exception") else ""


_outlet: Outlet | None = None
"""Where this process's entries go."""

_CALL_SITE: Final = CallsiteParameterAdder(
    {CallsiteParameter.PATHNAME, CallsiteParameter.LINENO, CallsiteParameter.FUNC_NAME},
    additional_ignores=[__name__],
)

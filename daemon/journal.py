"""What the service says: structlog to journald, to a terminal, or as JSON lines.

An entry is one event of `daemon.happenings` and its facts. Saying it never raises and never waits for
journald; what could not be said is counted, and told after the next entry that could.
"""

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol, TextIO

import structlog
from structlog.processors import CallsiteParameter, CallsiteParameterAdder, TimeStamper
from structlog.typing import Processor

from daemon.journald import JOURNAL, JournalSocket, encode, is_stderr_the_journal
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


class Sink(Protocol):
    """Where rendered entries go."""

    def send(self, entry: bytes) -> bool:
        """Take one entry, without waiting; False when it was dropped."""


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
        say_to(Lines(stream), as_json, TimeStamper(fmt="iso", utc=True), level)
    else:
        stamp = TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False)
        say_to(Lines(stream), in_colour if stream.isatty() else in_plain, stamp, level)
    _hear_libraries()


def say_to(sink: Sink, render: Render, stamp: Processor, level: Level) -> None:
    """Send every entry of `level` and above to `sink`, rendered by `render`."""
    sayer = _Sayer(sink, render)
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
        logger_factory=lambda *_: sayer,
        cache_logger_on_first_use=False,
    )


def as_journal_entry(entry: Mapping[str, Any]) -> bytes:
    """Return the entry for journald: a sentence for a person, and each fact as a field of its own."""
    fields = {
        "MESSAGE": printable(_sentence(entry) + _traceback(entry)),
        "PRIORITY": str(_PRIORITIES[entry["level"]]),
        "SYSLOG_IDENTIFIER": IDENTIFIER,
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


class Lines:
    """A sink of lines: a terminal, a pipe, a file."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def send(self, entry: bytes) -> bool:
        """Write one entry; False when the other end is gone."""
        try:
            self._stream.buffer.write(entry)
            self._stream.buffer.flush()
        except (OSError, ValueError):  # broken, full, closed
            return False
        return True


class _Sayer:
    """What structlog takes for a logger: hands entries to the sink and keeps count of the dropped."""

    def __init__(self, sink: Sink, render: Render) -> None:
        self._sink, self._render, self._dropped = sink, render, 0

    def say(self, entry: bytes) -> None:
        if not self._sink.send(entry):
            self._dropped += 1
        elif self._dropped:
            self._tell_dropped()

    def _tell_dropped(self) -> None:
        stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
        told = {"event": "journal.dropped", "level": "warning", "entries": self._dropped}
        if self._sink.send(self._render(stamp(self, "warning", told))):
            self._dropped = 0

    debug = info = warning = error = critical = say


class _Library(logging.Handler):
    """Says what a library logs by Python's own means."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say it as an event of ours; what cannot be worded goes to stderr, as logging has it."""
        level = max(known for known in _KNOWN_LEVELS if known <= record.levelno)
        try:
            structlog.get_logger().log(
                level,
                "library.warned",
                library=record.name,
                said=record.getMessage(),
                exc_info=record.exc_info,
            )
        except Exception:  # noqa: BLE001 - a library must not fail over a log entry of its own
            self.handleError(record)


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


_CALL_SITE: Final = CallsiteParameterAdder(
    {CallsiteParameter.PATHNAME, CallsiteParameter.LINENO, CallsiteParameter.FUNC_NAME},
    additional_ignores=[__name__],
)

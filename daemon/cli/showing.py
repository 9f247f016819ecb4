"""Records and their history as a person reads them, and as scripts do."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from daemon.cli.words import facts, length, moment, printable, table, terminal_width
from storage.events import Event
from storage.readiness import Listed, Readiness
from storage.record import Milestone


def records_table(listed: Iterable[Listed]) -> str:
    """Return one record a line."""
    rows = [
        (
            str(each.id),
            f"{each.created_at.astimezone():%m-%d %H:%M}",
            _state(each),
            each.title or each.filename,
        )
        for each in listed
    ]
    return table(("ID", "CREATED", "STATE", "RECORDING"), rows, width=terminal_width())


def record_facts(found: Readiness) -> str:
    """Return all that is known of a record, a fact a line, and its text."""
    stop = found.stop
    shown = facts(
        (
            ("id", str(found.id)),
            ("file", found.filename),
            ("title", found.title),
            ("description", found.description),
            ("topics", ", ".join(found.topics)),
            ("created", moment(found.created_at, seconds=True)),
            ("milestone", f"{found.milestone}, since {moment(found.milestone_since, seconds=True)}"),
            ("progress", _progress(found)),
            ("failures", str(found.failures) if found.failures else ""),
            ("stopped", f"{moment(stop.at, seconds=True)} by {stop.by}: {stop.code}" if stop else ""),
            ("reason", stop.reason if stop else ""),
            ("remedy", f"{stop.code.message} Lift it with: rubezh records lift {found.id}" if stop else ""),
            ("language", found.found_language or found.asked_language or ""),
            ("warnings", "; ".join(found.warnings)),
        )
    )
    text = "\n".join(printable(line) for line in (found.text or "").splitlines())
    return f"{shown}\n{text}\n" if text else shown


def record_json(found: Readiness) -> Mapping[str, Any]:
    """Return the same for scripts."""
    return attrs.asdict(found) | {"audio_seconds": found.audio_seconds, "fraction": found.fraction}


def events_table(events: Iterable[Event]) -> str:
    """Return one event a line, its details last."""
    rows = [
        (moment(each.at, seconds=True), each.kind, each.milestone.value, _detail(each)) for each in events
    ]
    return table(("AT", "EVENT", "MILESTONE", "BY, DETAILS"), rows, width=terminal_width())


def _state(each: Listed) -> str:
    if each.stop_code is not None:
        return "stopped"
    if each.milestone is Milestone.TRANSCRIBE and each.audio_seconds:
        return f"{each.milestone} {min(1.0, each.recognised_seconds / each.audio_seconds):.0%}"
    return each.milestone.value


def _progress(found: Readiness) -> str:
    if found.audio_seconds is None:
        return ""
    done = found.audio_seconds if found.milestone is Milestone.DONE else found.recognised_seconds
    return f"{length(done)} of {length(found.audio_seconds)}"


def _detail(event: Event) -> str:
    said = (
        f"{name}: {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in event.detail.items()
    )
    return ", ".join((event.by, *said))

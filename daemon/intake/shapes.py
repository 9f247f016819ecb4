"""What the doors show, as plain data for JSON. No I/O."""

from datetime import UTC, datetime
from typing import Any

from storage.events import Event
from storage.readiness import Readiness
from storage.record import StopCode

_BY_PEOPLE = ("accepted", "lifted", "deleted", "undeleted", "edited")


def shown_record(readiness: Readiness) -> dict[str, Any]:
    """Return the answer to the readiness poll."""
    stop = readiness.stop
    return {
        "id": str(readiness.id),
        "milestone": readiness.milestone,
        "stopped": stop is not None,
        "stop": stop
        and {
            "code": stop.code,
            "message": stop.code.message,
            "at": shown_time(stop.at),
            "milestone": readiness.milestone,
        },
        "progress": {
            "audio_seconds": readiness.audio_seconds,
            "recognised_seconds": readiness.recognised_seconds,
            "fraction": readiness.fraction,
            "queue_position": readiness.queue_position,
        },
        "title": readiness.title,
        "description": readiness.description,
        "topics": readiness.topics,
        "filename": readiness.filename,
        "language": readiness.found_language or readiness.asked_language,
        "created_at": shown_time(readiness.created_at),
        "milestone_since": shown_time(readiness.milestone_since),
        "failures": readiness.failures,
        "edition": readiness.edition,
        "audio": {
            "declared_seconds": readiness.declared_seconds,
            "decoded_seconds": readiness.decoded_seconds,
            "warnings": readiness.warnings,
        },
        "text": readiness.text,
    }


def shown_event(event: Event) -> dict[str, Any]:
    """Return one line of the history: causes of failures and names of workers are the service owner's."""
    code = StopCode(event.detail["code"]) if event.kind == "stopped" else None
    by_person = event.kind in _BY_PEOPLE or code is StopCode.STOPPED_BY_OWNER
    return {
        "id": event.id,
        "at": shown_time(event.at),
        "kind": event.kind,
        "milestone": event.milestone,
        "by": event.by if by_person else "service",
        **({} if code is None else {"code": code, "message": code.message}),
    }


def shown_time(moment: datetime) -> str:
    """Return a moment as RFC 3339 in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

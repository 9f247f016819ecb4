"""What the doors show, and as what: the classes here are the answers, and the description of the answers."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import attrs
from attrs import frozen
from cattrs import Converter

from storage.events import Event
from storage.readiness import Readiness
from storage.record import Milestone, StopCode

_BY_PEOPLE = ("accepted", "lifted", "deleted", "undeleted", "edited", "handed_over")


@frozen(kw_only=True)
class ShownStop:
    """Why a record is out of work until a person lifts the stop."""

    code: Annotated[StopCode, "The stable word for it."]
    message: Annotated[str, "Cause and remedy in two sentences, for a person."]
    at: datetime
    milestone: Milestone


@frozen(kw_only=True)
class ShownListedProgress:
    """How far the recognition is."""

    audio_seconds: Annotated[float | None, "The length of the audio; null while nobody knows it."]
    recognised_seconds: Annotated[float, "How much of it is text."]
    fraction: Annotated[float | None, "The same from 0 to 1; null while the length is unknown."]


@frozen(kw_only=True)
class ShownProgress(ShownListedProgress):
    """How far the recognition is, and how far the record's turn."""

    queue_position: Annotated[
        int | None,
        "Its place among those that wait for the same; null when it does not. No part of the ETag.",
    ]


@frozen(kw_only=True)
class ShownAudio:
    """What is known of the audio; where the lengths disagree a warning says so."""

    declared_seconds: Annotated[float | None, "As the file says of itself."]
    decoded_seconds: Annotated[float | None, "As it was decoded; null before that."]
    warnings: Annotated[tuple[str, ...], "What its owner should know, as stable words."]


@frozen(kw_only=True)
class ShownListed:
    """A record in a list."""

    id: UUID
    milestone: Annotated[Milestone, "The point it has reached."]
    stopped: Annotated[bool, "Whether it is out of work until a person lifts the stop."]
    stop: Annotated[ShownStop | None, "Why, if it is."]
    progress: ShownListedProgress
    title: str
    description: str
    topics: tuple[str, ...]
    left_name: Annotated[str, "Who is on the left side of a call, as the owner says."]
    right_name: Annotated[str, "The same of the right side."]
    filename: Annotated[str, "As it was sent: text, and nothing else."]
    language: Annotated[str | None, "What is spoken, as found or as asked for."]
    created_at: datetime
    milestone_since: datetime
    failures: Annotated[int, "How often a stage was begun since one last succeeded."]
    edition: Annotated[
        int, "The version of title, description, topics and names; the service's own work never moves it."
    ]
    corrections: Annotated[int, "How often the owner has corrected the text."]
    audio: ShownAudio


@frozen(kw_only=True)
class ShownRecord(ShownListed):
    """A record, as the readiness poll has it."""

    progress: ShownProgress
    text: Annotated[str | None, "The whole text once the record is done; null until then."]


@frozen(kw_only=True)
class ShownPage:
    """A page of records, the newest first."""

    records: tuple[ShownListed, ...]
    next_cursor: Annotated[str | None, "To be given as `cursor` for the next page; null on the last."]


@frozen(kw_only=True)
class ShownEvent:
    """Something that happened to a record."""

    id: Annotated[int, "Grows; Last-Event-ID in a stream."]
    at: datetime
    kind: str
    milestone: Milestone
    by: Annotated[str, "The person who did it, or `service`."]
    code: Annotated[StopCode | None, "Of a stop: why."]
    message: Annotated[str | None, "The same for a person."]


@frozen(kw_only=True)
class ShownHistory:
    """A record's history, the oldest event first."""

    events: tuple[ShownEvent, ...]


def plain(shown: object) -> Any:  # noqa: ANN401 - JSON takes every form
    """Return an answer as plain data for JSON."""
    return _PLAIN.unstructure(shown)


def shown_record(readiness: Readiness) -> dict[str, Any]:
    """Return the answer to the readiness poll, as plain data."""
    listed = _listed(readiness)
    progress = ShownProgress(**attrs.asdict(listed["progress"]), queue_position=readiness.queue_position)
    shown: dict[str, Any] = plain(ShownRecord(**{**listed, "progress": progress}, text=readiness.text))
    return {name: shown[name] for name in (*listed, "text")}  # in the order of lists, what is long at the end


def shown_listed(readiness: Readiness) -> ShownListed:
    """Return a record as lists have it."""
    return ShownListed(**_listed(readiness))


def shown_event(event: Event) -> ShownEvent:
    """Return one line of the history: causes of failures and names of workers are the service owner's."""
    code = StopCode(event.detail["code"]) if event.kind == "stopped" else None
    by_person = event.kind in _BY_PEOPLE or code is StopCode.STOPPED_BY_OWNER
    return ShownEvent(
        id=event.id,
        at=event.at,
        kind=event.kind,
        milestone=event.milestone,
        by=event.by if by_person else "service",
        code=code,
        message=code and code.message,
    )


def shown_time(moment: datetime) -> str:
    """Return a moment as RFC 3339 in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _listed(readiness: Readiness) -> dict[str, Any]:
    stop = readiness.stop
    return {
        "id": readiness.id,
        "milestone": readiness.milestone,
        "stopped": stop is not None,
        "stop": stop
        and ShownStop(code=stop.code, message=stop.code.message, at=stop.at, milestone=readiness.milestone),
        "progress": ShownListedProgress(
            audio_seconds=readiness.audio_seconds,
            recognised_seconds=readiness.recognised_seconds,
            fraction=readiness.fraction,
        ),
        "title": readiness.title,
        "description": readiness.description,
        "topics": readiness.topics,
        "left_name": readiness.left_name,
        "right_name": readiness.right_name,
        "filename": readiness.filename,
        "language": readiness.found_language or readiness.asked_language,
        "created_at": readiness.created_at,
        "milestone_since": readiness.milestone_since,
        "failures": readiness.failures,
        "edition": readiness.edition,
        "corrections": readiness.corrections,
        "audio": ShownAudio(
            declared_seconds=readiness.declared_seconds,
            decoded_seconds=readiness.decoded_seconds,
            warnings=readiness.warnings,
        ),
    }


_PLAIN = Converter()
_PLAIN.register_unstructure_hook(datetime, shown_time)
_PLAIN.register_unstructure_hook(UUID, str)

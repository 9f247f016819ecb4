"""The record: one submitted recording, its state and its text."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from attrs import frozen


class Milestone(StrEnum):
    """The points a record passes, in order."""

    CREATED = "created"
    CONVERTED = "converted"
    TRANSCRIBE = "transcribe"
    DONE = "done"


class StopCode(StrEnum):
    """Why a record is out of work until a person lifts the flag (closed list)."""

    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    OVERDUE = "overdue"
    NOT_MEDIA = "not_media"
    NO_AUDIO = "no_audio"
    TOO_LONG = "too_long"
    SILENT = "silent"
    INCOMPLETE_RECOGNITION = "incomplete_recognition"
    RECOGNISER_REFUSED = "recogniser_refused"
    STOPPED_BY_OWNER = "stopped_by_owner"
    AUDIO_MISSING = "audio_missing"

    @property
    def message(self) -> str:
        """One sentence of cause and one of remedy, for the record's owner."""
        return _MESSAGES[self]


_MESSAGES = {
    StopCode.ATTEMPTS_EXHAUSTED: "The work on this recording failed too many times in a row. "
    "Lift the stop to try again; if it stops once more, ask the service owner, whose log has the cause.",
    StopCode.OVERDUE: "This recording stayed at one milestone far longer than its length explains. "
    "Lift the stop to start that step again.",
    StopCode.NOT_MEDIA: "The file is not an audio or video recording that can be read. "
    "Check that it plays on your own device and send it again.",
    StopCode.NO_AUDIO: "The file has no audio track with sound in it, or not the one asked for. "
    "Send a file with sound, or ask for another track.",
    StopCode.TOO_LONG: "The recording is longer than this service accepts. "
    "Cut it into shorter parts, or ask the service owner to raise the limit.",
    StopCode.SILENT: "No speech was found in the recording. "
    "Check the microphone or the chosen track and send it again.",
    StopCode.INCOMPLETE_RECOGNITION: "Too much of the speech could not be turned into text. "
    "Lift the stop to try again, or choose another recogniser.",
    StopCode.RECOGNISER_REFUSED: "The recogniser refused this recording. "
    "Ask the service owner, whose log has the recogniser's own words.",
    StopCode.STOPPED_BY_OWNER: "This recording was stopped on request. Lift the stop to go on.",
    StopCode.AUDIO_MISSING: "The stored audio of this recording is missing. "
    "Ask the service owner to restore the store, or send the recording again.",
}


class Gap(StrEnum):
    """Why speech has no text (closed list)."""

    NO_TEXT = "no_text"
    REPETITION = "repetition"
    CRASHED = "crashed"
    TOO_SLOW = "too_slow"
    FAILED = "failed"

    @property
    def message(self) -> str:
        """One sentence for the record's owner."""
        return _GAPS[self]


_GAPS = {
    Gap.NO_TEXT: "Somebody speaks here, and the recogniser gave no text for it, asked twice.",
    Gap.REPETITION: "The recogniser did nothing but repeat itself here, and its text was dropped.",
    Gap.CRASHED: "The recogniser crashed at this place each time.",
    Gap.TOO_SLOW: "The recogniser did not get done with this place, and was ended each time.",
    Gap.FAILED: "The recogniser failed at this place each time.",
}


@frozen(kw_only=True)
class Stop:
    """The stop flag: `reason` is the full one, for the service owner; `code.message` is for a person."""

    code: StopCode
    reason: str
    at: datetime
    by: str


@frozen(kw_only=True)
class Record:
    """A record as read from its row; no field has a default, so a column forgotten in a query is an error.

    Seconds are floats, times are aware and UTC, paths are relative to the store's root.
    """

    id: UUID
    owner_id: UUID
    created_at: datetime
    # The owner's own: the pipeline never writes these.
    title: str
    description: str
    topics: tuple[str, ...]
    asked_language: str | None
    edition: int
    # As submitted.
    filename: str
    channels: str
    track: int | None
    hotwords: str
    translate: bool
    store_id: UUID
    source_path: str
    source_bytes: int
    source_sha256: bytes
    # The queue's.
    milestone: Milestone
    milestone_since: datetime
    milestone_seconds: float
    lane: str | None
    failures: int
    claim_token: UUID | None
    lease_until: datetime | None
    stop: Stop | None
    deleted_at: datetime | None
    # The conversion's.
    audio_path: str | None
    declared_seconds: float | None
    decoded_seconds: float | None
    audio_warnings: tuple[str, ...]
    # The recognition's.
    recogniser: str | None
    operation: dict[str, Any] | None
    found_language: str | None
    recognised_seconds: float
    recognised_text: str | None


@frozen(kw_only=True)
class Word:
    """One word with its own times, in seconds from the start of the file."""

    start: float
    end: float
    text: str
    probability: float


@frozen(kw_only=True)
class Segment:
    """A piece of recognised text, keyed by `slice` and `number`; times are seconds from the file's start.

    `side` is "left" or "right" where a recording's sides were recognised apart, `language` what is spoken
    where each slice has its own. With a `gap` it is the mark of speech that has no text, and says why.
    """

    slice: int
    number: int
    start: float
    end: float
    text: str
    words: tuple[Word, ...] = ()
    side: str = ""
    language: str | None = None
    gap: Gap | None = None


# What a stage found: each class is one stage's own columns, and nothing else is ever written by it.


@frozen(kw_only=True)
class Conversion:
    """The converting stage's columns: the recognition copy and the lengths that must be kept apart."""

    audio_path: str
    declared_seconds: float | None
    decoded_seconds: float
    audio_warnings: tuple[str, ...]


@frozen(kw_only=True)
class OperationBegun:
    """A recognition was begun: by which recogniser, and all it needs to go on."""

    recogniser: str
    operation: dict[str, Any]


@frozen(kw_only=True)
class Advance:
    """A recognition went on: its new state, how far it is, and the segments that are new.

    `anew`: all segments there were are dropped, as the recognition begins again.
    """

    operation: dict[str, Any]
    recognised_seconds: float
    found_language: str | None
    segments: tuple[Segment, ...]
    anew: bool


Findings = Conversion | OperationBegun | Advance

"""What the local recogniser and the process with its model say to each other: one JSON object a line."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import frozen
from cattrs import Converter

_converter = Converter(forbid_extra_keys=True)


@frozen(kw_only=True)
class SliceAsked:
    """A request for the text of the slice of `audio` (a whole path) that begins at `start_sample`.

    `language` is a code of Whisper's, or None to have it found; `shortest` and `longest` are in seconds.
    """

    audio: str
    start_sample: int
    language: str | None
    hotwords: str
    beam_size: int
    shortest: float
    longest: float


@frozen(kw_only=True)
class Cut:
    """Where the slice ends, told before its text is worked out."""

    next_sample: int
    total_samples: int


@frozen(kw_only=True)
class Piece:
    """A piece of text, in seconds from the start of the audio."""

    start: float
    end: float
    text: str


@frozen(kw_only=True)
class Finished:
    """The slice is done; `language` is what was asked, or found, or None where there was no speech.

    `probability` is of a language that was found; `invented` counts pieces of text that nobody said.
    """

    language: str | None
    probability: float | None
    speech_seconds: float
    invented: int


class FailureKind(StrEnum):
    """Who is to blame for a slice without an end."""

    AUDIO = "audio"
    MEMORY = "memory"
    MODEL = "model"
    LANGUAGE = "language"
    FAULT = "fault"


@frozen(kw_only=True)
class Failed:
    """The slice was not recognised."""

    kind: FailureKind
    reason: str


Answer = Cut | Piece | Finished | Failed

_NAMES: dict[str, type[Answer]] = {"cut": Cut, "piece": Piece, "finished": Finished, "failed": Failed}


def request_to_json(asked: SliceAsked) -> dict[str, Any]:
    """Return the request as plain data."""
    return dict(_converter.unstructure(asked))


def request_from_json(message: Mapping[str, Any]) -> SliceAsked:
    """Return the request that `request_to_json` made; raises when it is none."""
    return _converter.structure(message, SliceAsked)


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Return the answer as plain data with its name under `event`."""
    name = next(name for name, kind in _NAMES.items() if isinstance(answer, kind))
    return {"event": name, **_converter.unstructure(answer)}


def answer_from_json(message: Mapping[str, Any]) -> Answer:
    """Return the answer that `answer_to_json` made; raises when it is none."""
    fields = {name: value for name, value in message.items() if name != "event"}
    return _converter.structure(fields, _NAMES[message["event"]])

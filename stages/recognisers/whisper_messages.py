"""What the local recogniser and the process with its model say to each other: one JSON object a line."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import frozen
from cattrs import Converter

from stages.answers import Answers
from storage.record import Gap, Word

_converter = Converter(forbid_extra_keys=True)


@frozen(kw_only=True)
class SliceAsked:
    """A request for the text of the slice of `audio` (a whole path) that begins at `start_sample`.

    `language` is a code of Whisper's, or None to have it found; `shortest` and `longest` are in seconds;
    `batch_size` windows of speech are worked out side by side.
    """

    audio: str
    start_sample: int
    language: str | None
    translate: bool
    hotwords: str
    beam_size: int
    batch_size: int
    shortest: float
    longest: float


@frozen(kw_only=True)
class Cut:
    """Where the slice ends, told before its text is worked out."""

    next_sample: int
    total_samples: int


@frozen(kw_only=True)
class Begun:
    """The model is loaded, and the work on the slice begins."""


@frozen(kw_only=True)
class Piece:
    """A piece of text, in seconds from the start of the audio, with its words; or the mark of a gap."""

    start: float
    end: float
    text: str
    words: tuple[Word, ...] = ()
    side: str = ""
    gap: Gap | None = None


@frozen(kw_only=True)
class Finished:
    """The slice is done; `language` is what was asked, or found, or None where there was no speech.

    `probability` is of a language that was found; `again_seconds` of speech were heard again, and the text of
    so many windows was `dropped`, as nobody said it.
    """

    language: str | None
    probability: float | None
    speech_seconds: float
    gap_seconds: float
    again_seconds: float
    dropped: int


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


Answer = Cut | Begun | Piece | Finished | Failed

_ANSWERS = Answers[Answer](
    _converter,
    {
        "cut": Cut,
        "begun": Begun,
        "piece": Piece,
        "finished": Finished,
        "failed": Failed,
    },
)


def request_to_json(asked: SliceAsked) -> dict[str, Any]:
    """Return the request as plain data."""
    return dict(_converter.unstructure(asked))


def request_from_json(message: Mapping[str, Any]) -> SliceAsked:
    """Return the request that `request_to_json` made; raises when it is none."""
    return _converter.structure(message, SliceAsked)


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Return the answer as plain data with its name."""
    return _ANSWERS.to_json(answer)


def answer_from_json(message: Mapping[str, Any]) -> Answer:
    """Return the answer that `answer_to_json` made; raises when it is none."""
    return _ANSWERS.from_json(message)

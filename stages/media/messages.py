"""What the converting stage and its child say to each other: one JSON object a line."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import frozen
from cattrs import Converter

from stages.answers import Answers
from storage.record import StopCode

_converter = Converter(forbid_extra_keys=True)


class Channels(StrEnum):
    """What is wanted of a recording with two sides: their mix, both, or both where it is a call."""

    MIX = "mix"
    SPLIT = "split"
    AUTO = "auto"


@frozen(kw_only=True)
class Request:
    """Decode `source` into `target`, both whole paths; the target has its name only when it is whole."""

    source: str
    target: str
    track: int | None  # which of the audio tracks, from 0; None: the first with sound
    channels: Channels
    longest_seconds: float


@frozen(kw_only=True)
class Progressed:
    """A sign of life, at most two a second."""

    decoded_seconds: float


@frozen(kw_only=True)
class Caution:
    """Something a person should know about a recording that was decoded all the same."""

    code: str
    sentence: str


@frozen(kw_only=True)
class Finished:
    """The copy is whole and durable (its folder is not: that is the reader's to fsync)."""

    declared_seconds: float | None  # what the file says of itself; None when it says nothing
    decoded_seconds: float  # what the copy holds, gaps on the file's own line included
    bad_packets: int
    track: int
    channels: int
    sides: int  # of the copy: 2 where those of a call are kept apart
    likeness: str | None  # of the recording's two sides to each other
    codec: str
    cautions: tuple[Caution, ...]


@frozen(kw_only=True)
class Refused:
    """The recording itself is at fault: no other try can help."""

    code: StopCode
    reason: str


@frozen(kw_only=True)
class Failed:
    """The work failed through no proven fault of the recording; `errno` is the system's, where it had one."""

    reason: str
    errno: int | None


Answer = Progressed | Finished | Refused | Failed

_ANSWERS = Answers[Answer](
    _converter,
    {
        "progressed": Progressed,
        "finished": Finished,
        "refused": Refused,
        "failed": Failed,
    },
)


def request_to_json(request: Request) -> dict[str, Any]:
    """Return the request as plain data."""
    return dict(_converter.unstructure(request))


def request_from_json(message: Mapping[str, Any]) -> Request:
    """Return the request that `request_to_json` made; raises when it is none."""
    return _converter.structure(message, Request)


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Return the answer as plain data with its name."""
    return _ANSWERS.to_json(answer)


def answer_from_json(message: Mapping[str, Any]) -> Answer:
    """Return the answer that `answer_to_json` made; raises when it is none."""
    return _ANSWERS.from_json(message)

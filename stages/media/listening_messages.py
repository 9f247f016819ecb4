"""What the maker of listening copies and its child say to each other: one JSON object a line."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from attrs import frozen
from cattrs import Converter

from stages.answers import Answers
from stages.media.messages import Failed, Progressed

_converter = Converter(forbid_extra_keys=True)
_converter.register_unstructure_hook(bytes, lambda value: b64encode(value).decode("ascii"))
_converter.register_structure_hook(bytes, lambda text, _: b64decode(text))


@frozen(kw_only=True)
class ListeningRequest:
    """Make a listening copy at `target` of the recognition copy `audio`, unless `source` is one; whole paths.

    `source` is None where something is known of it that keeps it from being one.
    """

    source: str | None
    audio: str
    target: str


@frozen(kw_only=True)
class Made:
    """It is made: `media` is what kind it is, `is_source`: the source itself, and nothing was written.

    The file is whole and durable; its folder is the reader's to fsync.
    """

    media: str
    is_source: bool
    peaks: bytes


ListeningAnswer = Progressed | Made | Failed

_ANSWERS = Answers[ListeningAnswer](_converter, {"progressed": Progressed, "made": Made, "failed": Failed})


def request_to_json(request: ListeningRequest) -> dict[str, Any]:
    """Return the request as plain data."""
    return dict(_converter.unstructure(request))


def request_from_json(message: Mapping[str, Any]) -> ListeningRequest:
    """Return the request that `request_to_json` made; raises when it is none."""
    return _converter.structure(message, ListeningRequest)


def answer_to_json(answer: ListeningAnswer) -> dict[str, Any]:
    """Return the answer as plain data with its name."""
    return _ANSWERS.to_json(answer)


def answer_from_json(message: Mapping[str, Any]) -> ListeningAnswer:
    """Return the answer that `answer_to_json` made; raises when it is none."""
    return _ANSWERS.from_json(message)

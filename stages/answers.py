"""What a child of ours may say: a closed set of answers, each a JSON object with its name under `event`."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from cattrs import Converter

T = TypeVar("T")


class Answers(Generic[T]):
    """Turns answers into plain data and back; `names` holds every kind of them."""

    def __init__(self, converter: Converter, names: Mapping[str, type[T]]) -> None:
        self._converter = converter
        self._kinds = names
        self._names = {kind: name for name, kind in names.items()}

    def to_json(self, answer: T) -> dict[str, Any]:
        """Return the answer as plain data with its name."""
        return {"event": self._names[type(answer)], **self._converter.unstructure(answer)}

    def from_json(self, message: Mapping[str, Any]) -> T:
        """Return the answer that `to_json` made; raises when it is none."""
        fields = {name: value for name, value in message.items() if name != "event"}
        return self._converter.structure(fields, self._kinds[message["event"]])

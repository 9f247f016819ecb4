"""JSON Schemas of what the doors say, made from the very classes that they say it with. No I/O.

A class of ours becomes an object whose members are its fields; `Annotated[kind, "words"]` describes one, and
a mapping in there adds to its schema.
"""

import types
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import attrs

Schema = dict[str, Any]

_PLAIN: Mapping[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    UUID: {"type": "string", "format": "uuid"},
    datetime: {"type": "string", "format": "date-time"},
    type(None): {"type": "null"},
    Any: {},
}


class Schemas:
    """The schemas of a document: each class is described once, and named wherever it stands."""

    def __init__(self) -> None:
        """Begin with none."""
        self.named: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:  # noqa: ANN401 - types come in every form
        """Return the schema of values of a kind; TypeError for a kind that has no form in JSON."""
        origin, inside = get_origin(kind), get_args(kind)
        if origin is not None:
            return self._built(kind, origin, inside)
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return {"type": "string", "enum": [each.value for each in kind]}
        if attrs.has(kind):
            return self._reference(kind)
        raise TypeError(f"{kind!r} has no form in JSON")

    def _built(self, kind: Any, origin: Any, inside: tuple[Any, ...]) -> Schema:  # noqa: ANN401 - the same
        if origin is Annotated:
            return self._described(inside)
        if origin is Literal:
            return {"enum": list(inside)}
        if origin in (Union, types.UnionType):
            return self._either(inside)
        if origin is tuple and inside[1:] == (...,):
            return {"type": "array", "items": self.of(inside[0])}
        if origin is Mapping:
            return {"type": "object", "additionalProperties": self.of(inside[1])}
        raise TypeError(f"{kind!r} has no form in JSON")

    def _described(self, inside: tuple[Any, ...]) -> Schema:
        kind, *more = inside
        schema = self.of(kind)
        for each in more:
            schema = {**schema, **({"description": each} if isinstance(each, str) else each)}
        return schema

    def _either(self, kinds: tuple[Any, ...]) -> Schema:
        schemas = [self.of(kind) for kind in kinds]
        if all(set(schema) == {"type"} for schema in schemas):
            return {"type": [schema["type"] for schema in schemas]}
        return {"anyOf": schemas}

    def _reference(self, kind: type) -> Schema:
        name = kind.__name__
        if name not in self.named:
            self.named[name] = {}  # known before its members are: one of them may be of its own kind
            hints = get_type_hints(kind, include_extras=True)
            members = {field.name: self.of(hints[field.name]) for field in attrs.fields(kind)}
            self.named[name] = {
                "type": "object",
                "description": (kind.__doc__ or "").strip(),
                "properties": members,
                "required": list(members),
                "additionalProperties": False,
            }
        return {"$ref": f"#/components/schemas/{name}"}

"""Queries, as they are declared: read by the declaration, every fault told at once. No I/O."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Literal

from attrs import frozen

from daemon.intake.problems import Problem

Schema = Mapping[str, Any]
_MOST_DIGITS = 18


@frozen(kw_only=True)
class Parameter:
    """Something that stands beside a request's body; `schema` is of one value."""

    name: str
    says: str
    schema: Schema
    place: Literal["query", "header", "path"] = "query"
    repeats: bool = False


def read_query(given: Iterable[tuple[str, str]], parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the values that are given, by name; raises Problem with a phrase for each fault."""
    known = {each.name: each for each in parameters if each.place == "query"}
    read: dict[str, Any] = {}
    faults = []
    for name, text in given:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there are none"
            faults.append(f"{name[:100]!a} is no parameter of this request ({there})")
        elif name in read:
            faults.append(f"{name} is given more than once")
        else:
            read[name], fault = _value(name, text, known[name].schema)
            faults += fault
    if faults:
        detail = f"The query cannot be understood: {'; '.join(faults[:10])}."
        raise Problem(HTTPStatus.BAD_REQUEST, "invalid_query", detail)
    return read


def _value(name: str, text: str, schema: Schema) -> tuple[Any, list[str]]:
    match schema:
        case {"enum": [*allowed]}:
            return (text, []) if text in allowed else (None, [f"{name} must be one of {', '.join(allowed)}"])
        case {"type": "boolean"}:
            truth = {"true": True, "false": False}.get(text)
            return truth, [] if truth is not None else [f"{name} must be true or false"]
        case {"type": "integer", "minimum": least, "maximum": most}:
            plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
            if plain and least <= int(text) <= most:
                return int(text), []
            return None, [f"{name} must be a whole number from {least} to {most}"]
        case {"type": "string", "maxLength": most}:
            return text, _text_faults(name, text, most)
        case _:
            raise TypeError(f"{name} is declared in a form that nobody reads: {schema}")


def _text_faults(name: str, text: str, most: int) -> list[str]:
    if "\x00" in text:
        return [f"{name} holds a NUL character"]
    return [f"{name} has {len(text)} letters, and {most} is the most"] if len(text) > most else []

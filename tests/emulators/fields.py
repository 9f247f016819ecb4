"""What a service allows in the JSON it is sent: unknown names and wrong kinds are refused."""

import re
from collections.abc import Mapping
from typing import Any, Final

Shape = Mapping[str, Any]
"""Names, each with a type, a set of words, a nested shape, or a list of one of these."""

INTEGER: Final = "integer, or one as text"


class Unfit(ValueError):
    """What was sent does not have the shape; the text says where, as a service would."""


def check(value: object, shape: Any, at: str = "") -> None:
    """Raise Unfit where a value does not fit."""
    if isinstance(shape, Mapping):
        _check_object(value, shape, at)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise Unfit(f"{at} must be a list")
        for number, each in enumerate(value):
            check(each, shape[0], f"{at}[{number}]")
    elif not _fits(value, shape):
        raise Unfit(f"{at}: invalid value {value!r}")


def _check_object(value: object, shape: Shape, at: str) -> None:
    if not isinstance(value, dict):
        raise Unfit(f"{at or 'body'} must be an object")
    for name, inner in value.items():
        if name not in shape:
            raise Unfit(f'unknown field "{name}"')
        check(inner, shape[name], f"{at}.{name}".lstrip("."))


def _fits(value: object, shape: Any) -> bool:
    if isinstance(shape, set | frozenset):
        return value in shape
    if shape is INTEGER:
        return type(value) is int or (isinstance(value, str) and bool(re.fullmatch(r"-?[0-9]+", value)))
    return type(value) is shape


def camel(value: object) -> object:
    """Return the same with names as in camelCase: gateways take both."""
    if isinstance(value, dict):
        return {re.sub(r"_([a-z])", _raised, name): camel(each) for name, each in value.items()}
    return [camel(each) for each in value] if isinstance(value, list) else value


def _raised(letter: re.Match[str]) -> str:
    return letter[1].upper()

"""Plain data into frozen attrs classes, with every fault of it told at once in a person's words."""

import math
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import attrs
from attrs import Attribute, frozen
from cattrs import ClassValidationError, Converter, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

T = TypeVar("T")
_LONGEST_SHOWN = 40


class Faulty(Exception):
    """The data does not fit; `faults` holds one phrase for each fault, its dotted name first."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        """Keep the faults in the order of the names."""
        super().__init__("\n".join(faults))
        self.faults = faults


@frozen(kw_only=True)
class Range:
    """A validator for numbers: `least` and `most` belong to the range, `above` does not."""

    least: float | None = None
    above: float | None = None
    most: float

    def __call__(self, _instance: object, _field: "Attribute[Any]", value: float) -> None:
        """Raise ValueError with the first bound that does not hold; the name is the caller's to tell."""
        for holds, bound in (
            (self.least is None or value >= self.least, f">= {self.least}"),
            (self.above is None or value > self.above, f"> {self.above}"),
            (value <= self.most, f"<= {self.most}"),
        ):
            if not holds:
                raise ValueError(f"must be {bound}, is {_shown(value)}")


def structure(raw: object, kind: type[T]) -> T:
    """Return `raw` (nested dicts of plain values) as `kind`; raises Faulty with every fault at once."""
    try:
        return _converter().structure(raw, kind)
    except (ClassValidationError, ValueError) as error:
        raise Faulty(tuple(sorted(_faults(error, (), kind)))) from error


def dotted_names(kind: type, above: tuple[str, ...] = ()) -> Iterator[tuple[str, "Attribute[Any]"]]:
    """Return the dotted name of every plain field below `kind`, with the field itself."""
    for each in attrs.fields(kind):
        path = (*above, each.name)
        if each.type is not None and attrs.has(each.type):
            yield from dotted_names(each.type, path)
        else:
            yield ".".join(path), each


def _converter() -> Converter:
    converter = Converter()
    converter.register_structure_hook_factory(attrs.has, lambda kind: _table(kind, converter))
    converter.register_structure_hook(str, lambda value, _: _text(value))
    converter.register_structure_hook(bool, lambda value, _: _exactly(bool, "true or false", value))
    converter.register_structure_hook(int, lambda value, _: _exactly(int, "a whole number", value))
    converter.register_structure_hook(float, lambda value, _: _number(value))
    converter.register_structure_hook(Path, lambda value, _: _path(value))
    return converter


def _table(kind: type, converter: Converter) -> Callable[[object, object], object]:
    """Return the hook of one attrs class: it checks each field by itself, so that no fault hides another."""
    # attrs would run the validators only once every field has its type, and stop at the first that fails.
    hooks = {each.name: override(struct_hook=_checked(each, converter)) for each in attrs.fields(kind)}
    # The keyword arguments are fields' names, which mypy takes for the function's own options.
    inner: Callable[[dict[str, Any], object], object] = make_dict_structure_fn(
        kind,
        converter,
        _cattrs_forbid_extra_keys=True,
        **hooks,  # type: ignore[arg-type]  # the hooks are named by their fields
    )
    return lambda raw, _: inner(_exactly(dict, "a table", raw), kind)


def _checked(each: "Attribute[Any]", converter: Converter) -> Callable[[object, object], object]:
    def checked(raw: object, _: object) -> object:
        value = converter.structure(raw, each.type)  # type: ignore[arg-type]  # every field of ours is typed
        if each.validator is not None:
            each.validator(None, each, value)
        return value

    return checked


def _exactly(kind: type[T], words: str, value: object) -> T:
    """Return `value` when it is of `kind` and no other: a bool is no number here."""
    if type(value) is kind:
        return value
    raise ValueError(f"must be {words}, is {_shown(value)}")


def _number(value: object) -> float:
    try:
        number = float(_exactly(float if isinstance(value, float) else int, "a number", value))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, is {_shown(value)}")
    return number


def _text(value: object) -> str:
    text = _exactly(str, "text in quotes", value)
    if not text.isprintable():
        raise ValueError(f"must not hold control characters, is {_shown(value)}")
    return text


def _path(value: object) -> Path:
    text = _text(value)
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"names a home folder that nobody has, is {_shown(value)}") from error
    if not path.is_absolute():
        raise ValueError(f"must be an absolute path, is {_shown(value)}")
    return path


def _shown(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_shortened(value)}"'
        case int():
            # The digits of a monstrous number are of no use, and Python refuses to print the longest.
            return str(value) if abs(value) < 10**_LONGEST_SHOWN else "far too large"
        case float():
            return str(value)
        case _:
            return f"a {'table' if isinstance(value, dict) else type(value).__name__}"


def _shortened(text: str) -> str:
    shown = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
    return shown if shown.isprintable() else shown.encode("unicode_escape").decode("ascii")


def _faults(error: BaseException, path: tuple[str, ...], root: type) -> Iterator[str]:
    match error:
        case ClassValidationError():
            named, unnamed = error.group_exceptions()
            for each, note in named:
                yield from _faults(each, (*path, note.name), root)
            for each in unnamed:
                yield from _faults(each, path, root)
        case ForbiddenExtraKeysError():
            for name in error.extra_fields:
                dotted = ".".join((*path, _shortened(name)))
                yield f"{dotted}: is no setting{_suggestion(name, path, error.cl, root)}"
        case ValueError():
            yield f"{'.'.join(path) or 'the whole of it'}: {error}"
        case _:
            raise error


def _suggestion(name: str, path: tuple[str, ...], table: type, root: type) -> str:
    known = [dotted for dotted, _ in dotted_names(root)]
    siblings = [each.name for each in attrs.fields(table)]
    near = [".".join((*path, each)) for each in get_close_matches(name, siblings, n=1)]
    elsewhere = [dotted for dotted in known if dotted.rpartition(".")[2] == name]
    likely = elsewhere or near or get_close_matches(".".join((*path, name)), known, n=1)
    return f"; did you mean {' or '.join(likely)}?" if likely else ""

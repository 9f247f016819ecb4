"""How the command line words things: names, lengths, moments, tables that fit a terminal."""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.cells import cell_len, set_cell_size

from storage.errors import Unavailable

_GAP = "  "
_NARROWEST = 8


def printable(text: str) -> str:
    """Return `text` with whatever a terminal would obey, or could not show, written out."""
    return "".join(each if each.isprintable() else _written_out(each) for each in text)


def file_name(path: Path) -> str:
    """Return a file's name for people: bytes that are no text and control characters written out."""
    return printable(str(path))


def length(seconds: float) -> str:
    """Return 0:42, 12:05 or 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def moment(at: datetime | None, *, seconds: bool = False) -> str:
    """Return a moment by the clock of this machine; "" for none."""
    if at is None:
        return ""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None) -> str:
    """Return lines of aligned columns, cut to fit into `width` cells if there is one."""
    widest = sys.maxsize if width is None else width // 2
    cells = [tuple(heads)]
    for row in rows:
        *firsts, last = (printable(cell) for cell in row)
        cells.append((*(cut(cell, widest) for cell in firsts), last))
    widths = [max(cell_len(row[column]) for row in cells) for column in range(len(heads))]
    return "".join(_line(row, widths, width) + "\n" for row in cells)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return one `name  value` a line, those without a value left out."""
    known = [(name, printable(value)) for name, value in pairs if value]
    widest = max(len(name) for name, _ in known)
    return "".join(f"{name:<{widest}}{_GAP}{value}\n" for name, value in known)


def terminal_width() -> int | None:
    """Return the columns of the terminal that results go to; None when they go elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def json_document(value: object) -> str:
    """Return `value` as JSON for scripts: moments in UTC, ids and paths as text."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=_plain) + "\n"


def put(text: str) -> None:
    """Write a result to stdout, in UTF-8 whatever the terminal's own alphabet.

    Raises Unavailable when nobody can take it, but BrokenPipeError when the reader wants no more.
    """
    try:
        click.echo(text.encode("utf-8", "replace"), nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unavailable(f"the result cannot be written to stdout ({error.strerror})") from error


def tell(text: str) -> None:
    """Say on stderr how it went, a `rubezh:` before each line but the indented ones."""
    for line in text.splitlines():
        click.echo(line if line.startswith(" ") else f"rubezh: {line}", err=True)


def _line(row: Sequence[str], widths: Sequence[int], width: int | None) -> str:
    aligned = [set_cell_size(cell, size) for cell, size in zip(row[:-1], widths, strict=False)]
    start = _GAP.join((*aligned, ""))
    last = row[-1]
    if width is not None:
        last = cut(last, max(_NARROWEST, width - cell_len(start)))
    return (start + last).rstrip()


def cut(text: str, width: int) -> str:
    """Return `text` in at most `width` cells, an ellipsis where it was cut."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _written_out(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte of a file name that is no text
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case bytes():
            return value.hex()
        case Mapping():
            return dict(value)
        case os.PathLike():
            return os.fspath(value)
        case _:
            return str(value)

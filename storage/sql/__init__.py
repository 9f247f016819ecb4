"""The SQL of this room: one named file a statement, each with a comment that says what it is for."""

from functools import cache
from importlib.resources import files
from typing import LiteralString


@cache
def query(name: str) -> LiteralString:
    """Return the text of `storage/sql/<name>.sql`.

    The files are part of the code, so their text is as literal as a string in a module: no value is ever
    put into it other than as a parameter.
    """
    return (files(__package__) / f"{name}.sql").read_text("utf-8")

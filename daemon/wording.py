"""How the facts of an entry are worded: on one line, without secrets, harmless to a terminal. No I/O."""

import re
from collections.abc import Mapping
from typing import Final

from structlog.typing import EventDict, WrappedLogger

# What one looks for first stands first; every other fact follows in the order it was given.
_FIRST: Final = ("record", "owner", "stage", "milestone", "worker", "lane")
# These stand elsewhere in an entry, or are about the call and not about what happened.
_APART: Final = frozenset(
    {"event", "level", "timestamp", "exception", "exc_info", "pathname", "lineno", "func_name"}
)

_SECRET_KEY: Final = re.compile(r"secret|passw|authorization|cookie|api_?key", re.IGNORECASE)
# Wherever they stand: our own secrets, a bearer's, and a database's password in both forms of address.
_SECRET_TEXT: Final = re.compile(
    r"""rbz_[A-Za-z0-9_-]{16,}
      | (?<=bearer\ )\S+
      | (?<=://)(?P<user>[^\s:/@]*):[^\s/]*(?=@)
      | (?P<password>\bpassword\s*=\s*)(?:'(?:[^'\\]|\\.)*'|[^\s'"]+)
    """,
    re.IGNORECASE | re.VERBOSE,
)
HIDDEN: Final = "[hidden]"


def hide_secrets(_logger: WrappedLogger, _method: str, entry: EventDict) -> EventDict:
    """Put HIDDEN in place of what must not be read in a log, by its key and by its look."""
    return {key: _without_secrets(key, value) for key, value in entry.items()}


def word_facts(entry: Mapping[str, object]) -> str:
    """Return the facts of an entry as `key=value key='a longer value'`, on one line."""
    named = [key for key in _FIRST if key in entry]
    rest = [key for key in entry if key not in _FIRST and key not in _APART]
    return " ".join(f"{key}={_quoted(entry[key])}" for key in (*named, *rest))


def other_facts(entry: Mapping[str, object]) -> dict[str, str]:
    """Return every fact of an entry as text, by its key."""
    return {key: _text(value) for key, value in entry.items() if key not in _APART}


def printable(text: str) -> str:
    """Return `text` with its lines kept and everything else that could steer a terminal escaped."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else repr(sign)[1:-1] for sign in text)


def _quoted(value: object) -> str:
    text = _text(value)
    if text and text.isprintable() and not set(text) & set(" \"'="):
        return text
    return repr(text)  # escapes line ends and all that is not printable


def _text(value: object) -> str:
    match value:
        case float():
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case BaseException():
            return f"{type(value).__name__}: {value}"
        case _:
            return str(value)


def _without_secrets(key: str, value: object) -> object:
    match value:
        case _ if _SECRET_KEY.search(key):
            return HIDDEN
        case str() | BaseException():
            text = _text(value)
            return _SECRET_TEXT.sub(_hidden, text)
        case Mapping():
            return {inner: _without_secrets(str(inner), fact) for inner, fact in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_without_secrets(key, fact) for fact in value]
        case _:
            return value


def _hidden(found: re.Match[str]) -> str:
    if (user := found["user"]) is not None:
        return f"{user}:{HIDDEN}"
    return (found["password"] or "") + HIDDEN

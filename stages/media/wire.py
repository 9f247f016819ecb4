"""A media child's side of the talk: one request in, answers out, each a line of JSON."""

import os
import sys
from collections.abc import Callable, Mapping
from json import dumps, loads
from typing import Any

_LONGEST_REQUEST = 1 << 16  # characters

Tell = Callable[[Mapping[str, Any]], None]


def heard() -> tuple[Mapping[str, Any], Tell]:
    """Return the request, and what tells an answer; nothing else of this process reaches the wire."""
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever native code prints must not reach the wire
    request = loads(sys.stdin.readline(_LONGEST_REQUEST))

    def tell(answer: Mapping[str, Any]) -> None:
        wire.write(dumps(answer) + "\n")

    return request, tell

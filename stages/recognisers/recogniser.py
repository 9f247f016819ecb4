"""The shape of a recogniser: recognition is an operation that is begun, then advanced until it is finished.

Each advance is one claim on the record. A local model does one slice of the audio in it and is at once ready
for the next; a remote service is asked once how far it is and names the delay until the next time.
"""

import errno
from pathlib import Path
from typing import Any, Protocol

import trio
from attrs import frozen

from stages.stage import Hopeless, Tools
from storage.record import Record, Segment, StopCode

_STORE_FILE = "store.json"


@frozen(kw_only=True)
class InProgress:
    """The operation went on, or at least did not fail.

    `operation` is all that is needed to go on, as JSON; `segments` are the new ones, whose keys are the same
    when the same part is done again; `delay` is in seconds; `state` is what the recogniser last said.
    `anew`: it begins again, and all segments there were are dropped.
    """

    operation: dict[str, Any]
    recognised_seconds: float
    found_language: str | None
    segments: tuple[Segment, ...]
    delay: float
    state: str
    anew: bool = False


@frozen(kw_only=True)
class Finished:
    """The whole recording is recognised; the fields as in `InProgress`."""

    operation: dict[str, Any]
    recognised_seconds: float
    found_language: str | None
    segments: tuple[Segment, ...]


class Recogniser(Protocol):
    """What turns the recognition copy into text, here or elsewhere. Whatever it raises is a failure."""

    @property
    def name(self) -> str:
        """Its name in records and settings, which is also the name of its lane."""

    async def begin(self, record: Record, tools: Tools) -> dict[str, Any] | Hopeless:
        """Begin the operation and return its first state, as JSON."""

    async def advance(
        self, record: Record, operation: dict[str, Any], tools: Tools
    ) -> InProgress | Finished | Hopeless:
        """Take the operation one step on; safe to be cancelled, and to be done again."""

    def time_limit(self, record: Record) -> float:
        """Return the seconds that one `begin` or `advance` may take."""

    def whole_limit(self, record: Record) -> float:
        """Return the seconds after which an operation on this record, with its retries, is judged lost."""

    async def check_means(self) -> None:
        """Raise `MeansAway` when no recording can be recognised now (no model, no service)."""


async def find_copy(tools: Tools) -> Path | Hopeless:
    """Return the recognition copy, or the verdict on a record whose copy is certainly gone.

    Raises OSError when nothing is certain: the disk cannot be read, or the store is not mounted.
    """
    return await trio.to_thread.run_sync(_find_copy, tools)


def _find_copy(tools: Tools) -> Path | Hopeless:
    if tools.audio is None:
        raise RuntimeError("a record past its conversion names no recognition copy")
    try:
        tools.audio.stat()
    except FileNotFoundError:
        store = tools.folder.parents[2]
        if not (store / _STORE_FILE).is_file():
            raise OSError(errno.ENODEV, "the store is not there; mount it again", str(store)) from None
        return Hopeless(StopCode.AUDIO_MISSING, f"{tools.audio} is not there, and its store is")
    return tools.audio

"""A recogniser whose recognition copies mend themselves: a damaged or lost one is made again from the source.

A milestone never goes back, so nobody would convert such a record again, and every try to recognise it would
fail until it was stopped. Whoever holds the record's claim makes the copy anew in its own folder and puts it
where the row says it is, in one step. The copy depends on the source alone: should an earlier holder that
was long silent do the same, nobody could tell the difference.
"""

from pathlib import Path
from typing import Any

import structlog
import trio
from attrs import frozen

from stages.media.converter import Converter
from stages.media.wave64 import DamagedCopy, read_header
from stages.recognisers.recogniser import Finished, InProgress, Recogniser
from stages.stage import Hopeless, Tools
from storage.audio import fsync_folder
from storage.record import Record

log = structlog.get_logger()

_STORE_FILE = "store.json"


@frozen(kw_only=True)
class Mended:
    """`recogniser`, which meets whole copies only; `converter` makes them again."""

    recogniser: Recogniser
    converter: Converter

    @property
    def name(self) -> str:
        """The recogniser's name."""
        return self.recogniser.name

    async def begin(self, record: Record, tools: Tools) -> dict[str, Any] | Hopeless:
        """Begin the operation on a whole copy."""
        return await self._mend(record, tools) or await self.recogniser.begin(record, tools)

    async def advance(
        self, record: Record, operation: dict[str, Any], tools: Tools
    ) -> InProgress | Finished | Hopeless:
        """Take the operation one step on, with a whole copy."""
        return await self._mend(record, tools) or await self.recogniser.advance(record, operation, tools)

    def time_limit(self, record: Record) -> float:
        """Return the recogniser's own limit, and the time of a conversion."""
        return self.recogniser.time_limit(record) + self.converter.time_limit(record)

    def whole_limit(self, record: Record) -> float:
        """Return the recogniser's own limit, and the time of a conversion."""
        return self.recogniser.whole_limit(record) + self.converter.time_limit(record)

    async def check_means(self) -> None:
        """Raise MeansAway when the recogniser is away, or there is no room for a copy that must be mended."""
        await self.recogniser.check_means()
        await self.converter.check_room_again()

    async def _mend(self, record: Record, tools: Tools) -> Hopeless | None:
        """Make the copy again if it must be; return the verdict if it cannot be made."""
        fault = await trio.to_thread.run_sync(_fault_of, tools)
        if fault is None or tools.audio is None:
            return None
        converted = await self.converter.convert(record, tools)
        if isinstance(converted, Hopeless):
            return Hopeless(converted.code, f"{fault}, and it cannot be made again: {converted.reason}")
        copy, made = converted
        await trio.to_thread.run_sync(_put_in_place, copy, tools.audio)
        log.warning("audio.mended", record=str(record.id), reason=fault, decoded_seconds=made.decoded_seconds)
        return None


def _fault_of(tools: Tools) -> str | None:
    """Say what is wrong with the copy; None where it is whole, or where nothing is certain."""
    if tools.audio is None:
        return None
    try:
        read_header(tools.audio)
    except DamagedCopy as damaged:
        return str(damaged)
    except FileNotFoundError:
        store = tools.folder.parents[2]
        return f"{tools.audio} is not there, and its store is" if (store / _STORE_FILE).is_file() else None
    return None


def _put_in_place(copy: Path, place: Path) -> None:
    place.parent.mkdir(mode=0o700, exist_ok=True)
    copy.replace(place)
    fsync_folder(place.parent)
    fsync_folder(place.parent.parent)

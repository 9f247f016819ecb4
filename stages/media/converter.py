"""From a recording to its recognition copy: the talk with the decoding child, and what its answers mean.

The decoding is done by a child, because it is native code fed with bytes nobody vouches for.
"""

import errno
import math
import shutil
from pathlib import Path

import trio
from attrs import field, frozen

from stages.media.messages import (
    Answer,
    Channels,
    Failed,
    Finished,
    Progressed,
    Refused,
    Request,
    answer_from_json,
    request_to_json,
)
from stages.media.wave64 import RATE, SAMPLE_BYTES
from stages.stage import Child, ChildLimits, ChildRecipe, Hopeless, Tools
from storage.audio import fsync_folder
from storage.errors import MeansAway, StageFailed
from storage.record import Record, StopCode

COPY_NAME = "audio.w64"
_STORE_FILE = "store.json"
_CHILD = "stages.media.child"
_SILENT_SECONDS = 60.0  # a child speaks twice a second, even over a damaged file
_START_SECONDS = 300.0  # a loaded machine, a slow disk
_SLOWEST_DECODING = 20.0  # seconds of audio a second: a fiftieth of what one core does
_SLOWEST_READING = 5e6  # bytes a second
_LEAST_FREE_BYTES = 256 * 2**20
_MOST_SIDES = 2
_COPY_BYTES = (
    (1 + _MOST_SIDES) * RATE * SAMPLE_BYTES
)  # a second: the mix and the sides, while both may be wanted
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


class ConversionFailed(StageFailed):
    """The decoding failed through no proven fault of the recording; the text says how."""


class _Room:
    """How much must be free before another copy is begun: more than was not enough the last time."""

    def __init__(self) -> None:
        self.bytes = _LEAST_FREE_BYTES


@frozen(kw_only=True)
class Converter:
    """`store` is the store's root; recordings over `longest_seconds` are refused; the child is bounded."""

    store: Path
    memory_bytes: int
    longest_seconds: float
    _room: _Room = field(factory=_Room, init=False, eq=False, repr=False)

    def time_limit(self, record: Record) -> float:
        """Return the seconds that the longest recording in so many bytes may take on the slowest machine."""
        return (
            _START_SECONDS + self.longest_seconds / _SLOWEST_DECODING + record.source_bytes / _SLOWEST_READING
        )

    async def convert(self, record: Record, tools: Tools) -> tuple[Path, Finished] | Hopeless:
        """Decode the source into a copy in the attempt's own folder, durable when it is returned.

        Raises MeansAway when the disk is full, ConversionFailed, and ChildDied.
        """
        if await trio.to_thread.run_sync(_certainly_missing, tools):
            return Hopeless(StopCode.AUDIO_MISSING, f"{tools.source} is not there, and its store is")
        copy = tools.folder / COPY_NAME
        request = Request(
            source=str(tools.source),
            target=str(copy),
            track=record.track,
            channels=Channels(record.channels),
            longest_seconds=self.longest_seconds,
        )
        async with tools.children.started(self._recipe(record, tools.folder)) as child:
            await child.send(request_to_json(request))
            answer, decoded_seconds = await _last_answer(child)
        match answer:
            case Finished():
                await trio.to_thread.run_sync(fsync_folder, tools.folder)
                self._room.bytes = _LEAST_FREE_BYTES
                return copy, answer
            case Refused():
                return Hopeless(answer.code, answer.reason)
            case Failed() if answer.errno in _DISK_FULL:
                # What was written is free again, and too little: the lane stays closed until there is more.
                self._room.bytes = _LEAST_FREE_BYTES + math.ceil(max(decoded_seconds, 1) * _COPY_BYTES)
                reason = f"the disk of the store {self.store} is full ({answer.reason}); make room on it"
                raise MeansAway(reason)
            case Failed():
                raise ConversionFailed(f"the decoding failed: {answer.reason}")

    async def check_means(self) -> None:
        """Raise MeansAway while the store's disk has no room for a copy."""
        try:
            free = (await trio.to_thread.run_sync(shutil.disk_usage, self.store)).free
        except OSError as error:
            raise MeansAway(
                f"the store {self.store} cannot be reached ({error.strerror}); mount it again"
            ) from error
        if free < self._room.bytes:
            needed = f"{free >> 20} MiB left, and {self._room.bytes >> 20} are needed"
            raise MeansAway(f"the disk of the store {self.store} has {needed}; make room on it")

    async def check_room_again(self) -> None:
        """As `check_means`, but only since a copy has found too little room."""
        if self._room.bytes > _LEAST_FREE_BYTES:
            await self.check_means()

    def _recipe(self, record: Record, folder: Path) -> ChildRecipe:
        limits = ChildLimits(
            memory_bytes=self.memory_bytes,
            cpu_seconds=math.ceil(self.time_limit(record)),
            # The limit on the length ends it first, with a better word; this is for a fault of ours.
            file_bytes=math.ceil(self.longest_seconds + 60) * _MOST_SIDES * RATE * SAMPLE_BYTES,
        )
        # One thread: a numerical library would reserve memory by the core, against the limit.
        environment = {"OMP_NUM_THREADS": "1"}
        return ChildRecipe(module=_CHILD, folder=folder, limits=limits, environment=environment)


def _certainly_missing(tools: Tools) -> bool:
    """Tell an absent source from a store that is away: only a store that shows itself can lack a file."""
    if tools.source.exists():
        return False
    store = tools.folder.parents[2]
    return (store / _STORE_FILE).is_file() and tools.folder.is_dir()


async def _last_answer(child: Child) -> tuple[Finished | Refused | Failed, float]:
    """Return the child's last answer and how many seconds it had decoded by its last sign of life."""
    decoded_seconds = 0.0
    while True:
        with trio.move_on_after(_SILENT_SECONDS) as patience:
            answer: Answer = answer_from_json(await child.receive())
        if patience.cancelled_caught:
            raise ConversionFailed(f"the decoding said nothing for {_SILENT_SECONDS:g} s and was ended")
        if not isinstance(answer, Progressed):
            return answer, decoded_seconds
        decoded_seconds = answer.decoded_seconds

"""From a recognition copy to what people listen to and see: the talk with the child that makes it.

The child is the decoding one's sister, with the same limits: it reads the source, too, to see whether that
plays as it is.
"""

import errno
import math
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio
from attrs import frozen

from stages.media.listening_messages import (
    ListeningAnswer,
    ListeningRequest,
    Made,
    answer_from_json,
    request_to_json,
)
from stages.media.messages import Failed, Progressed
from stages.stage import Child, ChildLimits, ChildRecipe, Children
from storage.audio import fsync_folder
from storage.errors import MeansAway, StageFailed

COPY_NAME = "listening.mp3"
MOST_BYTES_A_SECOND = 12_000  # of two sides, with room for what stands around them
_CHILD = "stages.media.listening_child"
_SILENT_SECONDS = 600.0  # it is the last in line: on a busy machine it may wait long for its turn
_START_SECONDS = 300.0
_SLOWEST = 20.0  # seconds of audio a second of processor time
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


class ListeningFailed(StageFailed):
    """A listening copy could not be made; the text says why."""


@frozen(kw_only=True)
class ListeningMaker:
    """Makes listening copies; the child is bounded by `memory_bytes` and by the length it may be given."""

    memory_bytes: int
    longest_seconds: float

    async def make(
        self,
        request: ListeningRequest,
        folder: Path,
        children: Children,
        still_ours: Callable[[], Awaitable[None]],
    ) -> Made:
        """Make it in `folder`, durable when it is returned; `still_ours` is awaited at each sign of life.

        Raises MeansAway when the disk is full, ListeningFailed, ChildDied, and whatever `still_ours` does.
        """
        async with children.started(self._recipe(folder)) as child:
            await child.send(request_to_json(request))
            answer = await _last_answer(child, still_ours)
        match answer:
            case Made():
                if not answer.is_source:
                    await trio.to_thread.run_sync(fsync_folder, folder)
                return answer
            case Failed() if answer.errno in _DISK_FULL:
                raise MeansAway(f"the disk is full ({answer.reason}); make room on it")
            case Failed():
                raise ListeningFailed(f"a listening copy could not be made: {answer.reason}")

    def _recipe(self, folder: Path) -> ChildRecipe:
        limits = ChildLimits(
            memory_bytes=self.memory_bytes,
            cpu_seconds=math.ceil(_START_SECONDS + self.longest_seconds / _SLOWEST),
            file_bytes=math.ceil((self.longest_seconds + 60) * MOST_BYTES_A_SECOND),
        )
        return ChildRecipe(module=_CHILD, folder=folder, limits=limits, environment={"OMP_NUM_THREADS": "1"})


async def _last_answer(child: Child, still_ours: Callable[[], Awaitable[None]]) -> Made | Failed:
    while True:
        with trio.move_on_after(_SILENT_SECONDS) as patience:
            answer: ListeningAnswer = answer_from_json(await child.receive())
        if patience.cancelled_caught:
            raise ListeningFailed(f"the making said nothing for {_SILENT_SECONDS:g} s and was ended")
        if not isinstance(answer, Progressed):
            return answer
        await still_ours()

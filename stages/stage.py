"""The shape of a stage: what it takes, what it may return, and the tools it is handed.

A stage sees nouns and its tools, never the database. It returns one of a closed set, or raises: what it
raises is a failure, except `MeansAway`, which is a failure that also tells the lane's breaker.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from attrs import frozen

from storage.ending import Deferred, Hopeless, Reached
from storage.errors import StageFailed
from storage.record import Milestone, Record

__all__ = [
    "Child",
    "ChildDied",
    "ChildLimits",
    "ChildRecipe",
    "Children",
    "Deferred",
    "Hopeless",
    "Outcome",
    "Reached",
    "Stage",
    "Tools",
    "lane_after",
]


Outcome = Reached | Deferred | Hopeless
"""The three of an attempt's seven ends that a stage may declare."""


@frozen(kw_only=True)
class ChildLimits:
    """What a child process may use; `None` leaves that resource to the machine's own limit."""

    memory_bytes: int | None = None
    cpu_seconds: int | None = None
    file_bytes: int | None = None


@frozen(kw_only=True)
class ChildRecipe:
    """How to start a child of ours: `python -m module argv...` in `folder`."""

    module: str
    arguments: tuple[str, ...] = ()
    folder: Path
    limits: ChildLimits = ChildLimits()
    environment: Mapping[str, str] = {}


class Child(Protocol):
    """One child process that speaks JSON lines."""

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; raises `ChildDied` when nobody is there."""

    async def receive(self) -> dict[str, Any]:
        """Wait for the next message; raises `ChildDied` with how it ended and the tail of its stderr."""


class ChildDied(StageFailed):
    """A child ended before its answer; the text says how (signal, memory, exit code) and its last words."""


class Children(Protocol):
    """Starts children and never leaves one behind, whatever way the `async with` is left."""

    def started(self, recipe: ChildRecipe) -> AbstractAsyncContextManager[Child]:
        """Start a child for one use; it is dead when the block is left."""

    def borrowed(self, name: str, recipe: ChildRecipe) -> AbstractAsyncContextManager[Child]:
        """Take a warm child of that name, or start one; kept when the block ends well, killed otherwise."""


@frozen(kw_only=True)
class Tools:
    """What an attempt hands to its stage.

    `source` and `audio` are absolute paths (`audio` is the recognition copy, once there is one);
    `folder` is this attempt's own, fenced by its claim token: nothing outside it may be written. `last_fault`
    is what the stage called its failure, if the attempt before this one was one and had such a word, and
    `attempts_left` how many more there are after this one, if it fails.
    """

    source: Path
    audio: Path | None
    folder: Path
    children: Children
    token: UUID
    last_fault: str | None
    attempts_left: int

    def publish(self, file: Path) -> str:
        """Return the store-relative path under which `file`, made durable by its writer, is named in the row.

        Raises ValueError for a file outside this attempt's own folder.
        """
        inside = file.relative_to(self.folder)
        return str(Path("records") / self.folder.parent.name / self.folder.name / inside)


class Stage(Protocol):
    """Code that takes a record from one milestone to the next."""

    @property
    def name(self) -> str:
        """The stage's name in the log and in the numbers."""

    @property
    def takes(self) -> Milestone:
        """The milestone of the records it takes."""

    @property
    def gives(self) -> Milestone:
        """The milestone it brings them to."""

    @property
    def lane(self) -> str:
        """What it needs of this process; slots are counted per lane."""

    @property
    def lease_seconds(self) -> float:
        """How long a claim on a record at `takes` holds without renewal."""

    def time_limit(self, record: Record) -> float:
        """Return the seconds one attempt may take before it is ended and counted as a failure."""

    def milestone_limit(self, record: Record) -> float:
        """Return the seconds of work a record may spend at `takes` before it is stopped as overdue."""

    async def work(self, record: Record, tools: Tools) -> Outcome:
        """Do the work on one record; safe to be cancelled at any await."""

    async def check_means(self) -> None:
        """Raise `MeansAway` when what this stage needs is away for every record alike (model, disk)."""


def lane_after(stages: Sequence[Stage], milestone: Milestone) -> str | None:
    """Return the lane of the stage that takes `milestone`, or None when none does (the record is done)."""
    return next((stage.lane for stage in stages if stage.takes == milestone), None)

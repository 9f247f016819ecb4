"""How far the recordings are, on stderr: live bars on a terminal, a line now and then elsewhere."""

import io
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from daemon.cli.words import cut, length, printable, put, tell
from storage.readiness import Readiness
from storage.record import Milestone

LINE_SECONDS = 30.0  # between two lines about a recording that only went on
_NAME_CELLS = 24
_ALL_SHOWN = 8  # recordings; of more than these only the ones at work have a bar


class Display(AbstractContextManager["Display"], Protocol):
    """Shows where each recording is, by its number on the command line."""

    log: TextIO  # where log entries may go meanwhile

    def receiving(self, number: int, share: float) -> None:
        """Show that a recording is being copied into the store, and how much of it is."""

    def at(self, number: int, found: Readiness) -> None:
        """Show where a record is."""

    def result(self, text: str) -> None:
        """Write to stdout, the display out of the way."""


def display_for(files: Sequence[Path]) -> Display:
    """Return the display that suits where stderr goes."""
    names = [printable(path.name) for path in files]
    return Bars(names) if sys.stderr.isatty() else Lines(names)


def state_of(found: Readiness) -> str:
    """Return in a word or two what is happening to a record."""
    if found.stop is not None:
        return "stopped"
    if found.milestone is Milestone.DONE:
        return "done"
    if found.failures and not found.held:
        pause = f" in {length(found.wakes_in)}" if found.wakes_in else ""
        return f"failed {found.failures} in a row, again{pause}"
    if found.queue_position is not None and found.queue_position > 1:
        return f"waiting as number {found.queue_position}"
    return "converting" if found.milestone is Milestone.CREATED else "recognising"


def position_of(found: Readiness) -> str:
    """Return how far the recognition is, 0:42 / 4:00; "" while the length is unknown."""
    if found.audio_seconds is None:
        return ""
    done = found.audio_seconds if found.milestone is Milestone.DONE else found.recognised_seconds
    return f"{length(done)} / {length(found.audio_seconds)}"


class Lines:
    """A line when something changes, and one now and then when it merely goes on."""

    def __init__(self, names: Sequence[str]) -> None:
        """Begin with nothing told."""
        self.log: TextIO = sys.stderr
        self._names = names
        self._told: dict[int, tuple[str, str, float]] = {}

    def __enter__(self) -> Self:
        """There is nothing to prepare."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        """There is nothing to put back."""

    def receiving(self, number: int, share: float) -> None:
        """Say so once a recording is so large that its copy takes long."""
        self._tell(number, "copying", f"{share:.0%}", soon=False)

    def at(self, number: int, found: Readiness) -> None:
        """Say where a record is, when that is news."""
        self._tell(number, state_of(found), position_of(found), soon=True)

    def result(self, text: str) -> None:
        """Write to stdout."""
        put(text)

    def _tell(self, number: int, state: str, position: str, *, soon: bool) -> None:
        kind = state.partition(" in ")[0]  # a countdown is no news
        last_kind, last_position, at = self._told.setdefault(number, ("", "", monotonic()))
        news = soon and kind != last_kind
        went_on = (kind, position) != (last_kind, last_position) and monotonic() - at >= LINE_SECONDS
        if news or went_on:
            tell(f"{self._names[number]}: {state}{position and f', {position}'}")
            self._told[number] = (kind, position, monotonic())


class Bars:
    """A live bar for each recording."""

    def __init__(self, names: Sequence[str], console: Console | None = None) -> None:
        """Make the bars; they are shown inside the block."""
        self._progress = Progress(
            TextColumn("{task.fields[name]}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[position]}", markup=False),
            TextColumn("{task.description}", markup=False),
        )
        self._console = console or Console(stderr=True)
        self._live = self._new_live()
        self.log: TextIO = io.TextIOWrapper(_Above(self._console))
        widest = min(_NAME_CELLS, max(cell_len(name) for name in names))
        self._few = len(names) <= _ALL_SHOWN
        self._bars = [self._bar(cut(name, widest)) for name in names]

    def __enter__(self) -> Self:
        """Show the bars."""
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        """Take the bars away."""
        self._live.stop()

    def receiving(self, number: int, share: float) -> None:
        """Show the copy's share."""
        self._update(number, "copying", f"{share:.0%}", share)

    def at(self, number: int, found: Readiness) -> None:
        """Show the share of the audio that is recognised."""
        self._update(number, state_of(found), position_of(found), found.fraction or 0.0)

    def result(self, text: str) -> None:
        """Write to stdout, which may be the same terminal."""
        self._live.stop()
        put(text)
        self._live = self._new_live()  # a stopped one remembers where it was, and would erase the text there
        self._live.start()

    def _new_live(self) -> Live:
        return Live(self._progress, console=self._console, transient=True)

    def _bar(self, name: str) -> TaskID:
        return self._progress.add_task("", total=1.0, visible=self._few, name=name, position="")

    def _update(self, number: int, state: str, position: str, share: float) -> None:
        at_work = state not in ("done", "stopped") and not state.startswith("waiting")
        self._progress.update(
            self._bars[number],
            description=state,
            completed=share,
            position=position,
            visible=self._few or at_work,
        )


class _Above(io.BytesIO):
    """Puts what is written above the live bars, which would be torn otherwise."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def flush(self) -> None:
        """Print what was written since the last time."""
        written = self.getvalue().decode("utf-8", "backslashreplace")
        self.seek(0)
        self.truncate()
        if written:
            self._console.print(Text.from_ansi(written.removesuffix("\n")), soft_wrap=True)

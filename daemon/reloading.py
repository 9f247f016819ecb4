"""Reading the settings again while the service runs: all that was changed is adopted, or nothing is.

Most settings shape what is built at the start, and wait for the next one. SIGHUP asks for a reading; what
came of it lies in the state folder for whoever asked, until the next one.
"""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import structlog
import trio
from attrs import asdict, define, field, frozen

from daemon import systemd
from daemon.settings import Settings
from storage.errors import Refused

log = structlog.get_logger()

CHANGEABLE: Final = frozenset(
    {
        "work.poll_seconds",
        "work.failures_limit",
        "work.first_retry_seconds",
        "work.longest_retry_seconds",
        "work.settle_seconds",
        "intake.largest_bytes",
        "intake.queued_hours",
        "intake.account_unfinished",
        "intake.unfinished_hours",
    }
)
"""What may change while the service runs; each is looked at anew whenever it is needed."""


@frozen(kw_only=True)
class Answer:
    """What became of the reading with this number; `refusal` is empty when it was adopted."""

    number: int
    changed: tuple[str, ...] = ()
    refusal: str = ""


def changes(running: Settings, asked: Settings) -> Iterator[str]:
    """Return the dotted name of each setting that differs."""
    before, after = dict(_plain(asdict(running))), dict(_plain(asdict(asked)))
    return (name for name in after if after[name] != before[name])


def refusal_of(names: list[str]) -> str:
    """Say in one sentence which of the changed settings need a restart; empty when none does."""
    fixed = [name for name in names if name not in CHANGEABLE]
    if not fixed:
        return ""
    return (
        f"{', '.join(fixed)} cannot change while the service runs, so nothing was changed; restart it instead"
    )


def read_answer(folder: Path) -> Answer:
    """Return the last answer that lies in the state folder."""
    try:
        said = json.loads(_place(folder).read_text("utf-8"))
    except FileNotFoundError:
        return Answer(number=0)
    return Answer(number=said["number"], changed=tuple(said["changed"]), refusal=said["refusal"])


@define(kw_only=True)
class Reloading:
    """Reads the settings again when it is told to."""

    folder: Path
    running: Settings
    read: Callable[[], Settings]
    adopt: Callable[[Settings], None]
    status: Callable[[], str]
    _number: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Go on counting where an earlier run ended: nobody may take its answer for ours."""
        self._number = read_answer(self.folder).number

    async def hear(self) -> None:
        """Read again at each SIGHUP, until cancelled."""
        with trio.open_signal_receiver(signal.SIGHUP) as signals:
            async for _ in signals:
                systemd.reloading()
                answer = await self.again()
                try:
                    await trio.to_thread.run_sync(_write, self.folder, answer)
                except OSError as error:
                    log.warning("settings.unanswered", reason=str(error))
                systemd.ready(self.status())

    async def again(self) -> Answer:
        """Read the settings and adopt what was changed, if all of it can be."""
        self._number += 1
        try:
            asked = await trio.to_thread.run_sync(self.read)
        except Refused as refused:
            return self._refused(str(refused))
        changed = list(changes(self.running, asked))
        if refusal := refusal_of(changed):
            return self._refused(refusal)
        self.running = asked
        self.adopt(asked)
        log.info("settings.adopted", changed=changed)
        return Answer(number=self._number, changed=tuple(changed))

    def _refused(self, refusal: str) -> Answer:
        log.error("settings.refused", reason=refusal)
        return Answer(number=self._number, refusal=refusal)


def _place(folder: Path) -> Path:
    return folder / "reloaded"


def _write(folder: Path, answer: Answer) -> None:
    """Leave the answer for whoever asked, whole or not at all."""
    new = folder / "reloaded.new"
    new.write_text(json.dumps(asdict(answer)), "utf-8")
    new.replace(_place(folder))


def _plain(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _plain(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value

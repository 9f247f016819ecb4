"""One `rubezh transcribe`: its recordings go in, are watched, and their texts come out in order.

All of it can be done again: a recording that is in the store already is found by its bytes and options, so
whoever was interrupted goes on where they were.
"""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from uuid import UUID

import trio
from attrs import define, frozen

from daemon.cli.outputs import Outputs, deliver
from daemon.cli.person import person
from daemon.cli.progress import Display
from daemon.cli.sending import Site, find_or_accept
from daemon.cli.words import cut, file_name
from daemon.intake.options import Options
from daemon.transcript import EXPORTERS
from storage.account import Account
from storage.accounts import find_or_add_account
from storage.claim import NotFound
from storage.corrections import read_segments
from storage.errors import Refused, Unavailable
from storage.readiness import Readiness, read_readiness
from storage.record import Milestone, Stop

LOOK_SECONDS = 0.5
_CAUTIONS = {
    "silent": "no words were found in it",
    "cut_short": "it seems cut off: it holds less than it declares",
    "bad_packets": "damaged pieces of it were left out",
}
_REASON_CELLS = 400  # the whole of a reason is in `rubezh records show`


@frozen
class Text:
    """A recording's transcript, in the form that was asked for, and what a person should know of it."""

    text: str
    cautions: tuple[str, ...]


@frozen
class Fault:
    """Why there is no transcript: a sentence, and perhaps more below it."""

    told: str


@define
class _Recording:
    number: int
    path: Path
    place: Path | None
    record_id: UUID | None = None
    ending: Text | Fault | None = None


class Job:
    """The recordings of one command line, and how far each of them is."""

    def __init__(
        self, files: Sequence[Path], outputs: Outputs, form: str, options: Options, display: Display
    ) -> None:
        """Begin with nothing submitted; `form` is one of `daemon.transcript.EXPORTERS`."""
        self._recordings = [
            _Recording(number, path, place)
            for number, (path, place) in enumerate(zip(files, outputs.places, strict=True))
        ]
        self._form, self._options, self._display = form, options, display
        self._delivered = 0
        self.faults: list[str] = []
        self.cautions: list[str] = []  # what a person should know of recordings that have their texts
        self.looked_at = -math.inf  # by Trio's clock: the last time the database answered

    @property
    def is_done(self) -> bool:
        """True when each recording has its transcript in its place, or a reason in `faults`."""
        return self._delivered == len(self._recordings)

    async def run(self, site: Site) -> None:
        """Bring every recording to its end; may be run again after anything that interrupted it."""
        account = await find_or_add_account(site.database, person())
        if account.disabled_at is not None:
            raise Refused(
                f"your account is disabled; open it with: rubezh account enable {quote(account.name)}"
            )
        for recording in self._recordings:
            if recording.record_id is None and recording.ending is None:
                await self._submit(recording, site, account)
                await self._look(site, account)
        while not self.is_done:
            await trio.sleep(LOOK_SECONDS)
            await self._look(site, account)

    async def _look(self, site: Site, account: Account) -> None:
        for recording in self._recordings:
            if recording.ending is None and recording.record_id is not None:
                await self._look_at(recording, recording.record_id, site, account)
        self.looked_at = trio.current_time()
        while not self.is_done and self._recordings[self._delivered].ending is not None:
            # Whoever reads our output may take their time, and leases must be renewed meanwhile.
            await trio.to_thread.run_sync(self._deliver, self._recordings[self._delivered])
            self._delivered += 1

    async def _look_at(self, recording: _Recording, record_id: UUID, site: Site, account: Account) -> None:
        found = await read_readiness(site.database, record_id, account.id)
        if isinstance(found, NotFound):
            recording.ending = Fault(
                f"{file_name(recording.path)}: its record {record_id} was deleted meanwhile; "
                f"have it back with: rubezh records undelete {record_id}"
            )
            return
        self._display.at(recording.number, found)
        if found.stop is not None:
            recording.ending = Fault(_why_stopped(recording.path, found, found.stop))
        elif found.milestone is Milestone.DONE:
            segments = await read_segments(site.database, record_id, account.id)
            name = file_name(recording.path)
            recording.ending = Text(
                EXPORTERS[self._form](segments, _about(found)),
                tuple(f"{name}: {_CAUTIONS.get(code, code)}" for code in found.warnings),
            )

    def _deliver(self, recording: _Recording) -> None:
        if isinstance(recording.ending, Text):
            self.cautions += recording.ending.cautions
        match recording.ending:
            case Text(text) if recording.place is None:
                apart = "\n" if self._form == "txt" and self._delivered else ""
                self._display.result(apart + text)
            case Text(text):
                try:
                    deliver(text, recording.place)
                except Unavailable as error:  # the other transcripts may still find their places
                    self.faults.append(str(error))
            case Fault(told):
                self.faults.append(told)
            case None:
                raise AssertionError(recording)

    async def _submit(self, recording: _Recording, site: Site, account: Account) -> None:
        share = partial(self._display.receiving, recording.number)
        try:
            recording.record_id = await find_or_accept(recording.path, self._options, site, account, share)
        except OSError as error:
            recording.ending = Fault(f"{file_name(recording.path)}: cannot be read ({error.strerror})")


def _why_stopped(path: Path, found: Readiness, stop: Stop) -> str:
    return (
        f"{file_name(path)}: stopped at {found.milestone}: {stop.code.message}\n"
        f"  reason: {cut(' '.join(stop.reason.split()), _REASON_CELLS)}\n"
        f"  lift the stop with: rubezh records lift {found.id}"
    )


def _about(found: Readiness) -> dict[str, object]:
    return {
        "id": str(found.id),
        "filename": found.filename,
        "language": found.found_language or found.asked_language,
        "audio_seconds": found.audio_seconds,
    }

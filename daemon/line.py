"""The line: every stage, in order, each taking the milestone that the one before it gives."""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

from daemon.settings import Settings
from stages.advance_recognition import AdvanceRecognition
from stages.begin_recognition import BeginRecognition
from stages.convert import Convert
from stages.media.converter import Converter
from stages.media.listening_maker import ListeningMaker
from stages.recognisers.mended import Mended
from stages.recognisers.whisper import Whisper
from stages.stage import Stage
from storage.folder import StateFolder
from storage.record import Milestone, Record

_MIB = 2**20
_HOUR = 3600.0


class BrokenLineError(Exception):
    """The stages do not lead from the first milestone to the last one, one by one."""


def build_line(settings: Settings, folder: StateFolder) -> tuple[Stage, ...]:
    """Return every stage of this service, made from its settings and checked."""
    converter = Converter(
        store=folder.store,
        memory_bytes=settings.convert.memory_mb * _MIB,
        longest_seconds=settings.convert.longest_hours * _HOUR,
    )
    whisper = Whisper(
        model=settings.whisper.model,
        models=folder.models,
        threads=whisper_threads(settings),
        beam_size=settings.whisper.beam_size,
        batch_size=settings.whisper.batch_size,
        memory_bytes=settings.whisper.memory_mb * _MIB,
        shortest_seconds=settings.whisper.shortest_slice_seconds,
        longest_seconds=settings.whisper.longest_slice_seconds,
    )
    recogniser = Mended(recogniser=whisper, converter=converter)
    line: tuple[Stage, ...] = (
        Convert(converter=converter, lease_seconds=settings.convert.lease_seconds),
        BeginRecognition(recogniser=recogniser, lease_seconds=settings.whisper.lease_seconds),
        AdvanceRecognition(recogniser=recogniser, lease_seconds=settings.whisper.lease_seconds),
    )
    check_line(line)
    return line


def listening_maker(settings: Settings) -> ListeningMaker:
    """Return what makes listening copies beside the line, within the limits of a conversion."""
    return ListeningMaker(
        memory_bytes=settings.convert.memory_mb * _MIB,
        longest_seconds=settings.convert.longest_hours * _HOUR,
    )


def check_line(line: Sequence[Stage]) -> None:
    """Raise BrokenLineError unless the stages take every milestone but the last, once, in order."""
    if faults := list(_faults(line)):
        raise BrokenLineError(f"the line must pass {' -> '.join(Milestone)}, but {'; '.join(faults)}")


def _faults(line: Sequence[Stage]) -> Iterator[str]:
    for takes, gives in pairwise(Milestone):
        takers = [stage for stage in line if stage.takes is takes]
        if len(takers) != 1:
            yield f"{', '.join(stage.name for stage in takers) or 'no stage'} takes {takes}"
        for stage in takers:
            if stage.gives is not gives:
                yield f"{stage.name} brings records from {takes} to {stage.gives} instead of {gives}"
    for stage in line:
        if stage.takes is Milestone.DONE:
            yield f"{stage.name} takes {Milestone.DONE}, where a record has arrived"
    order = list(Milestone)
    for before, after in pairwise(line):
        if order.index(before.takes) > order.index(after.takes):
            yield f"{before.name}, which takes {before.takes}, stands before {after.name}"


def milestone_limit(line: Sequence[Stage], record: Record | None) -> float | None:
    """Return the seconds of work that a record may spend at its milestone; None where no stage takes it."""
    stage = next((each for each in line if record is not None and each.takes is record.milestone), None)
    return None if record is None or stage is None else stage.milestone_limit(record)


def slots_of(settings: Settings, line: Sequence[Stage]) -> dict[str, int]:
    """Return how many attempts may run at once in each lane of the line."""
    given = {"convert": settings.convert.slots, "whisper": settings.whisper.slots}
    return {stage.lane: given[stage.lane] for stage in line}


def whisper_threads(settings: Settings) -> int:
    """Return the threads of one recogniser: as set, else the machine's cores shared among the slots."""
    return settings.whisper.threads or max(1, (os.cpu_count() or 1) // settings.whisper.slots)

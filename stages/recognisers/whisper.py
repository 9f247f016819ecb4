"""The recogniser on this machine: Whisper in a warm child process, one slice of the audio per claim."""

from pathlib import Path
from typing import Any

import structlog
import trio
from attrs import evolve, frozen
from cattrs import Converter

from stages.media.wave64 import RATE, read_header
from stages.recognisers.models import distrust_model, find_model
from stages.recognisers.recogniser import Finished, InProgress, find_copy
from stages.recognisers.whisper_messages import (
    Cut,
    Failed,
    FailureKind,
    Piece,
    SliceAsked,
    answer_from_json,
    request_to_json,
)
from stages.recognisers.whisper_messages import Finished as SliceFinished
from stages.stage import Child, ChildLimits, ChildRecipe, Hopeless, Tools
from storage.errors import MeansAway, StageFailed
from storage.record import Record, Segment, StopCode

log = structlog.get_logger()

_CHILD = "stages.recognisers.whisper_child"
_START_SECONDS = 120.0  # until the slice is cut: a process starts on a loaded machine and reads a slow disk
_LOAD_SECONDS = 120.0  # for a large model on a slow disk
_LEAST_SECONDS = 30.0
_SLOWEST = 2.0  # seconds of work for one of audio; a model slower than that is too large for its machine
_MODEL_SECONDS = 300.0  # the first use of a model may have to make it
_LEAST_WHOLE_SECONDS = 3600.0
_SURE = 0.5  # a language found with this probability is kept for the rest of the recording,
_ENOUGH_SPEECH = 30.0  # and so is one found in so many seconds of speech

_converter = Converter(forbid_extra_keys=True)


class SliceFailed(StageFailed):
    """A slice was not recognised; the text says why."""


@frozen(kw_only=True)
class Operation:
    """How far a recognition is: the next slice, where it begins, and the language once it is settled."""

    next_sample: int
    slice: int
    total_samples: int
    language: str | None


@frozen(kw_only=True)
class SliceText:
    """One slice's end and its text."""

    cut: Cut
    pieces: tuple[Piece, ...]
    finished: SliceFinished


@frozen(kw_only=True)
class Whisper:
    """`model` is a known name or a folder, `models` where known ones are made; the rest bounds the child."""

    model: str
    models: Path
    threads: int
    beam_size: int
    memory_bytes: int
    shortest_seconds: float
    longest_seconds: float
    name: str = "whisper"

    async def begin(self, record: Record, tools: Tools) -> dict[str, Any] | Hopeless:  # noqa: ARG002 - other recognisers need the record
        """Begin at the first sample."""
        copy = await find_copy(tools)
        if isinstance(copy, Hopeless):
            return copy
        header = await trio.to_thread.run_sync(read_header, copy)
        begun = Operation(next_sample=0, slice=0, total_samples=header.samples, language=None)
        return dict(_converter.unstructure(begun))

    async def advance(
        self, record: Record, operation: dict[str, Any], tools: Tools
    ) -> InProgress | Finished | Hopeless:
        """Recognise one slice."""
        copy = await find_copy(tools)
        if isinstance(copy, Hopeless):
            return copy
        now = _converter.structure(operation, Operation)
        asked = SliceAsked(
            audio=str(copy),
            start_sample=now.next_sample,
            language=_asked_language(record) or now.language,
            hotwords=record.hotwords,
            beam_size=self.beam_size,
            shortest=self.shortest_seconds,
            longest=self.longest_seconds,
        )
        recipe = self._recipe(await self._find_model())
        async with tools.children.borrowed(self.name, recipe) as child:
            heard = await self._recognise(child, asked)
        match heard:
            case SliceText():
                return _step(record, now, heard)
            case Failed(kind=FailureKind.LANGUAGE):
                return Hopeless(StopCode.RECOGNISER_REFUSED, heard.reason)
            case Failed():
                raise SliceFailed(_told(asked, heard.reason))

    def time_limit(self, record: Record) -> float:  # noqa: ARG002 - a slice is bounded, however long its record
        """Return the seconds one slice may take, and a model that is made first."""
        return _MODEL_SECONDS + _START_SECONDS + self._budget(self.longest_seconds) + _LEAST_SECONDS

    def whole_limit(self, record: Record) -> float:
        """Return the seconds of the slowest recognition, twice over."""
        seconds = record.decoded_seconds or record.declared_seconds or 0.0
        return _LEAST_WHOLE_SECONDS + self.time_limit(record) + 2 * _SLOWEST * seconds

    async def check_means(self) -> None:
        """Raise MeansAway when there is no model; makes a known one that is not there yet."""
        await self._find_model()

    async def _find_model(self) -> Path:
        # What a cancel leaves behind in its thread does no harm: a model takes its place whole or not at all.
        return await trio.to_thread.run_sync(find_model, self.model, self.models, abandon_on_cancel=True)

    def _recipe(self, model: Path) -> ChildRecipe:
        return ChildRecipe(
            module=_CHILD,
            arguments=(str(model), str(self.threads)),
            folder=model,
            limits=ChildLimits(memory_bytes=self.memory_bytes),
            # One arena: each of more would reserve address space, against the limit, and keep what is freed.
            environment={"OMP_NUM_THREADS": str(self.threads), "MALLOC_ARENA_MAX": "1"},
        )

    @property
    def _remedy(self) -> str:
        return f"set another model, or more memory for it than {self.memory_bytes / 2**20:.0f} MiB"

    def _budget(self, seconds: float) -> float:
        return _LOAD_SECONDS + max(_LEAST_SECONDS, _SLOWEST * seconds)

    async def _recognise(self, child: Child, asked: SliceAsked) -> SliceText | Failed:
        """Have the child do a slice; what is raised from here costs the child its life."""
        cut: Cut | None = None
        pieces: list[Piece] = []
        with trio.move_on_after(_START_SECONDS) as patience:
            await child.send(request_to_json(asked))
            while True:
                match answer := answer_from_json(await child.receive()):
                    case Cut():
                        cut = answer
                        seconds = (cut.next_sample - asked.start_sample) / RATE
                        patience.deadline = trio.current_time() + self._budget(seconds)
                    case Piece():
                        pieces.append(answer)
                    case SliceFinished():
                        if cut is None or cut.next_sample <= asked.start_sample < cut.total_samples:
                            raise SliceFailed(_told(asked, "the recogniser did not move on"))
                        return SliceText(cut=cut, pieces=tuple(pieces), finished=answer)
                    case Failed(kind=FailureKind.MODEL):
                        await trio.to_thread.run_sync(distrust_model, self.model, self.models)
                        raise MeansAway(f"{answer.reason}; {self._remedy}")
                    case Failed(kind=FailureKind.MEMORY):
                        raise SliceFailed(_told(asked, f"{answer.reason}; {self._remedy}"))
                    case Failed(kind=FailureKind.FAULT):
                        raise SliceFailed(_told(asked, answer.reason))
                    case Failed():
                        return answer
        raise SliceFailed(_told(asked, "it took longer than it may, and was ended"))


def _told(asked: SliceAsked, reason: str) -> str:
    return f"the slice at {asked.start_sample / RATE:.1f} s was not recognised: {reason}"


def _asked_language(record: Record) -> str | None:
    """The owner's choice as Whisper names languages: "pt" for "pt-BR"."""
    return record.asked_language.partition("-")[0].lower() if record.asked_language else None


def _step(record: Record, now: Operation, heard: SliceText) -> InProgress | Finished:
    """Take a slice into the operation."""
    next_sample, total = heard.cut.next_sample, heard.cut.total_samples
    found = heard.finished
    language = now.language
    if language is None and _is_to_keep(found):
        language = found.language
    after = evolve(now, next_sample=next_sample, slice=now.slice + 1, total_samples=total, language=language)
    guessed = found.language if found.probability is not None else None
    log.info(
        "slice.recognised",
        record=str(record.id),
        slice=now.slice,
        seconds=(next_sample - now.next_sample) / RATE,
        speech_seconds=found.speech_seconds,
        language=found.language,
        invented=found.invented,
        characters=sum(len(piece.text) for piece in heard.pieces),
    )
    seconds, whole = next_sample / RATE, total / RATE
    operation = dict(_converter.unstructure(after))
    found_language = language or guessed or record.found_language
    segments = tuple(
        Segment(slice=now.slice, number=number, start=piece.start, end=piece.end, text=piece.text)
        for number, piece in enumerate(heard.pieces)
    )
    if next_sample >= total:
        return Finished(
            operation=operation,
            recognised_seconds=seconds,
            found_language=found_language,
            segments=segments,
        )
    return InProgress(
        operation=operation,
        recognised_seconds=seconds,
        found_language=found_language,
        segments=segments,
        delay=0.0,
        state=f"{seconds:.0f} of {whole:.0f} s recognised",
    )


def _is_to_keep(found: SliceFinished) -> bool:
    """Whether the language found in a slice holds for those that follow: not one guessed from a cough."""
    if found.probability is None:
        return False  # asked for, or no speech
    return found.probability >= _SURE or found.speech_seconds >= _ENOUGH_SPEECH

"""The recogniser on this machine: Whisper in a warm child process, one slice of the audio per claim."""

from pathlib import Path
from typing import Any

import structlog
import trio
from attrs import define, field, frozen

from stages.media.wave64 import RATE, read_header
from stages.recognisers.models import distrust_model, find_model
from stages.recognisers.narrowing import Fault, fault_of, plan
from stages.recognisers.recogniser import Finished, InProgress, find_copy
from stages.recognisers.whisper_messages import (
    Begun,
    Cut,
    Failed,
    FailureKind,
    Piece,
    SliceAsked,
    answer_from_json,
    request_to_json,
)
from stages.recognisers.whisper_messages import Finished as SliceFinished
from stages.recognisers.whisper_operation import (
    Operation,
    SliceText,
    begun,
    begun_again,
    operation_of,
    with_slice,
    without_piece,
    written,
)
from stages.stage import Child, ChildDied, ChildLimits, ChildRecipe, Hopeless, Tools
from storage.errors import MeansAway, RubezhError, StageFailed
from storage.record import Gap, Record, StopCode

log = structlog.get_logger()

_CHILD = "stages.recognisers.whisper_child"
_START_SECONDS = 120.0  # until the slice is cut: a process starts on a loaded machine and reads a slow disk
_LOAD_SECONDS = 120.0  # for a large model on a slow disk
_LEAST_SECONDS = 30.0
_SLOWEST = 2.0  # seconds of work for one of audio; a model slower than that is too large for its machine
_MODEL_SECONDS = 300.0  # the first use of a model may have to make it
_LEAST_WHOLE_SECONDS = 3600.0


class SliceFailed(StageFailed):
    """A slice was not recognised; the text says why."""


@frozen(kw_only=True)
class Whisper:
    """`model` is a known name or a folder, `models` where known ones are made; the rest bounds the child."""

    model: str
    models: Path
    threads: int
    beam_size: int
    batch_size: int
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
        return written(begun(header.samples))

    async def advance(
        self, record: Record, operation: dict[str, Any], tools: Tools
    ) -> InProgress | Finished | Hopeless:
        """Recognise one slice, or less of one that failed; give a short piece up that fails every time."""
        copy = await find_copy(tools)
        if isinstance(copy, Hopeless):
            return copy
        now = operation_of(operation)
        if now.anew:
            return begun_again(now)
        planned = plan(
            failures=record.failures,
            left=tools.attempts_left,
            last=fault_of(tools.last_fault),
            at=now.next_sample,
            longest=self.longest_seconds,
        )
        if planned.given_up is not None:
            log.warning(
                "slice.given_up",
                record=str(record.id),
                at=now.next_sample / RATE,
                reason=planned.given_up.message,
            )
            return without_piece(record, now, planned.given_up)
        asked = SliceAsked(
            audio=str(copy),
            start_sample=now.next_sample,
            language=_asked_language(record) or now.language,
            translate=record.translate,
            hotwords=record.hotwords,
            beam_size=self.beam_size,
            batch_size=self.batch_size,
            shortest=min(self.shortest_seconds, planned.longest / 2),
            longest=planned.longest,
        )
        recipe = self._recipe(await self._find_model())
        async with tools.children.borrowed(self.name, recipe) as child:
            heard = await self._recognise(child, asked)
        if isinstance(heard, Failed):
            return Hopeless(StopCode.RECOGNISER_REFUSED, heard.reason)
        _tell(record, now, heard)
        return with_slice(record, now, heard)

    def time_limit(self, record: Record) -> float:  # noqa: ARG002 - a slice is bounded, however long its record
        """Return the seconds one slice may take, and a model that is made first."""
        work = _LOAD_SECONDS + self._budget(self.longest_seconds)
        return _MODEL_SECONDS + _START_SECONDS + work + _LEAST_SECONDS

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
        return max(_LEAST_SECONDS, _SLOWEST * seconds)

    async def _recognise(self, child: Child, asked: SliceAsked) -> SliceText | Failed:
        """Have the child do a slice; what is raised from here costs the child its life."""
        so_far = _SoFar()
        with trio.move_on_after(_START_SECONDS) as patience:
            try:
                await child.send(request_to_json(asked))
                while (end := await self._hear(child, asked, so_far, patience)) is None:
                    pass
            except ChildDied as death:
                if so_far.is_begun:  # before that it had nothing of the audio
                    death.fault = _fault(asked, Gap.CRASHED)
                raise
            return end
        kind = Gap.TOO_SLOW if so_far.is_begun else None
        raise _failed(asked, "it took longer than it may, and was ended", kind)

    async def _hear(
        self, child: Child, asked: SliceAsked, so_far: "_SoFar", patience: trio.CancelScope
    ) -> SliceText | Failed | None:
        """Take one answer; None while there is no end."""
        match answer := answer_from_json(await child.receive()):
            case Cut():
                so_far.cut = answer
                patience.deadline = trio.current_time() + _LOAD_SECONDS
            case Begun():
                so_far.is_begun = True
                patience.deadline = trio.current_time() + self._budget(so_far.seconds_from(asked))
            case Piece():
                so_far.pieces.append(answer)
            case SliceFinished():
                cut = so_far.cut
                if cut is None or cut.next_sample <= asked.start_sample < cut.total_samples:
                    raise _failed(asked, "the recogniser did not move on", Gap.FAILED)
                return SliceText(cut=cut, pieces=tuple(so_far.pieces), finished=answer)
            case Failed(kind=FailureKind.LANGUAGE):
                return answer
            case Failed():
                raise await self._error_of(answer, asked, Gap.FAILED if so_far.is_begun else None)
        return None

    async def _error_of(self, answer: Failed, asked: SliceAsked, kind: Gap | None) -> RubezhError:
        """Return what a child's failure is to us; of that `kind` where the audio may be behind it."""
        match answer.kind:
            case FailureKind.MODEL:
                await trio.to_thread.run_sync(distrust_model, self.model, self.models)
                return MeansAway(f"{answer.reason}; {self._remedy}")
            case FailureKind.MEMORY:
                return _failed(asked, f"{answer.reason}; {self._remedy}", kind)
            case FailureKind.AUDIO:  # a disk or a copy that cannot be read: nothing to be made smaller for
                return _failed(asked, answer.reason, None)
            case _:
                return _failed(asked, answer.reason, kind)


@define
class _SoFar:
    """What a child has said of a slice that is not over."""

    cut: Cut | None = None
    is_begun: bool = False
    pieces: list[Piece] = field(factory=list)

    def seconds_from(self, asked: SliceAsked) -> float:
        """Return how long the slice is."""
        return 0.0 if self.cut is None else (self.cut.next_sample - asked.start_sample) / RATE


def _failed(asked: SliceAsked, reason: str, kind: Gap | None) -> SliceFailed:
    error = SliceFailed(f"the slice at {asked.start_sample / RATE:.1f} s was not recognised: {reason}")
    error.fault = None if kind is None else _fault(asked, kind)
    return error


def _fault(asked: SliceAsked, kind: Gap) -> str:
    return str(Fault(at=asked.start_sample, seconds=asked.longest, kind=kind))


def _tell(record: Record, now: Operation, heard: SliceText) -> None:
    found = heard.finished
    log.info(
        "slice.recognised",
        record=str(record.id),
        slice=now.slice,
        seconds=(heard.cut.next_sample - now.next_sample) / RATE,
        speech_seconds=found.speech_seconds,
        language=found.language,
        gap_seconds=found.gap_seconds,
        again_seconds=found.again_seconds,
        dropped=found.dropped,
        characters=sum(len(piece.text) for piece in heard.pieces),
    )


def _asked_language(record: Record) -> str | None:
    """The owner's choice as Whisper names languages: "pt" for "pt-BR"."""
    return record.asked_language.partition("-")[0].lower() if record.asked_language else None

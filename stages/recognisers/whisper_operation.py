"""How far a local recognition is, and what each step makes of it. No I/O."""

from typing import Any

from attrs import evolve, frozen
from cattrs import Converter

from stages.media.wave64 import RATE
from stages.recognisers.narrowing import SHORT_SECONDS, is_too_much
from stages.recognisers.recogniser import Finished, InProgress
from stages.recognisers.whisper_messages import Cut, Piece
from stages.recognisers.whisper_messages import Finished as SliceFinished
from stages.stage import Hopeless
from storage.record import Advance, Gap, Record, Segment, StopCode

_SURE = 0.5  # a language found with this probability is kept for the rest of the recording,
_ENOUGH_SPEECH = 30.0  # and so is one found in so many seconds of speech
_MOST_LACKING = 0.2  # of the speech may be without text,
_ALWAYS_LACKING = 10.0  # and so many seconds in any case

_converter = Converter(forbid_extra_keys=True)


@frozen(kw_only=True)
class Operation:
    """The next slice, where it begins, and the language once it is settled.

    `speech` and `lacking` are seconds of speech so far, and of it without text; `given_up` are those of
    pieces that could not be recognised at all, `in_a_row` how many of them came last. `anew`: the next step
    begins the whole again.
    """

    next_sample: int
    slice: int
    total_samples: int
    language: str | None
    speech: float = 0.0
    lacking: float = 0.0
    given_up: float = 0.0
    in_a_row: int = 0
    anew: bool = False


@frozen(kw_only=True)
class SliceText:
    """One slice's end and its text."""

    cut: Cut
    pieces: tuple[Piece, ...]
    finished: SliceFinished


def begun(samples: int) -> Operation:
    """Return the operation on a copy of so many samples, at its beginning."""
    return Operation(next_sample=0, slice=0, total_samples=samples, language=None)


def operation_of(state: dict[str, Any]) -> Operation:
    """Return an operation as it was written into the row."""
    return _converter.structure(state, Operation)


def written(operation: Operation) -> dict[str, Any]:
    """Return an operation as plain data for the row."""
    return dict(_converter.unstructure(operation))


def begun_again(now: Operation) -> InProgress:
    """Drop what there is and begin at the first sample: the stop of an incomplete text was lifted."""
    return InProgress(
        operation=written(begun(now.total_samples)),
        recognised_seconds=0.0,
        found_language=None,
        segments=(),
        delay=0.0,
        state="it begins again",
        anew=True,
    )


def with_slice(record: Record, now: Operation, heard: SliceText) -> InProgress | Finished | Hopeless:
    """Take a slice into the operation."""
    found = heard.finished
    language = found.language if now.language is None and _is_to_keep(found) else now.language
    after = evolve(
        now,
        next_sample=heard.cut.next_sample,
        slice=now.slice + 1,
        total_samples=heard.cut.total_samples,
        language=language,
        speech=now.speech + found.speech_seconds,
        lacking=now.lacking + found.gap_seconds,
        in_a_row=0,
    )
    segments = tuple(
        Segment(
            slice=now.slice,
            number=number,
            start=piece.start,
            end=piece.end,
            text=piece.text,
            words=piece.words,
            side=piece.side,
            gap=piece.gap,
        )
        for number, piece in enumerate(heard.pieces)
    )
    guessed = found.language if found.probability is not None else None
    return _after(after, segments, language or guessed or record.found_language)


def without_piece(record: Record, now: Operation, why: Gap) -> InProgress | Finished | Hopeless:
    """Mark a short piece as a gap and go on behind it."""
    end = min(now.next_sample + round(SHORT_SECONDS * RATE), now.total_samples)
    seconds = (end - now.next_sample) / RATE
    after = evolve(
        now,
        next_sample=end,
        slice=now.slice + 1,
        speech=now.speech + seconds,
        lacking=now.lacking + seconds,
        given_up=now.given_up + seconds,
        in_a_row=now.in_a_row + 1,
    )
    mark = Segment(slice=now.slice, number=0, start=now.next_sample / RATE, end=end / RATE, text="", gap=why)
    return _after(after, (mark,), now.language or record.found_language)


def _after(
    after: Operation, segments: tuple[Segment, ...], language: str | None
) -> InProgress | Finished | Hopeless:
    seconds, whole = after.next_sample / RATE, after.total_samples / RATE
    is_over = after.next_sample >= after.total_samples
    if reason := _too_much_lacks(after, is_over=is_over):
        findings = Advance(
            operation=written(evolve(after, anew=True)),
            recognised_seconds=seconds,
            found_language=language,
            segments=segments,
            anew=False,
        )
        return Hopeless(StopCode.INCOMPLETE_RECOGNITION, reason, findings)
    if is_over:
        return Finished(
            operation=written(after),
            recognised_seconds=seconds,
            found_language=language,
            segments=segments,
        )
    return InProgress(
        operation=written(after),
        recognised_seconds=seconds,
        found_language=language,
        segments=segments,
        delay=0.0,
        state=f"{seconds:.0f} of {whole:.0f} s recognised",
    )


def _too_much_lacks(after: Operation, *, is_over: bool) -> str:
    """Return why a text is not to be finished; empty where it covers enough."""
    whole = after.total_samples / RATE
    if is_too_much(in_a_row=after.in_a_row, seconds=after.given_up, whole=whole):
        return (
            f"{after.given_up:.0f} of {whole:.0f} s could not be recognised at all, "
            f"the last {after.in_a_row} pieces in a row"
        )
    if is_over and after.lacking > max(_ALWAYS_LACKING, _MOST_LACKING * after.speech):
        return f"{after.lacking:.0f} of {after.speech:.0f} s of speech have no text"
    return ""


def _is_to_keep(found: SliceFinished) -> bool:
    """Whether the language found in a slice holds for those that follow: not one guessed from a cough."""
    if found.probability is None:
        return False  # asked for, or no speech
    return found.probability >= _SURE or found.speech_seconds >= _ENOUGH_SPEECH

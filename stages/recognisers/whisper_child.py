"""The process that holds a Whisper model: `python -m stages.recognisers.whisper_child MODEL THREADS`.

It takes requests on its stdin and answers on its stdout, a JSON line each (`whisper_messages`). Between
requests it keeps the model and nothing else, so that a record's text never depends on who came before it.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

# The libraries below read these when they are imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = sys.argv[2]

from attrs import field, frozen

from stages.media.sides import mix_whole
from stages.media.wave64 import RATE, DamagedCopy, read_sides
from stages.recognisers.pieces import Heard, Hearing, tidy
from stages.recognisers.slicing import Bounds, Packed, Samples, Span, cut, widened, within
from stages.recognisers.whisper_messages import (
    Answer,
    Cut,
    Failed,
    FailureKind,
    Finished,
    Piece,
    SliceAsked,
    answer_to_json,
    request_from_json,
)
from stages.recognisers.whisper_model import LanguageUnknown, Model, ModelUnusable, find_speech

_KEPT_PAUSE = 2 * RATE  # a shorter silence stays in what the model hears
_MARGIN = 4 * RATE // 10  # kept around speech, so that no first or last sound is lost
_EDGE = (
    8 * RATE // 10
)  # before the first word and after the last: cut closer, the model errs in them more often
_PARTING_PAUSE = 3 * RATE  # over a longer silence no two sentences are heard as one
_SILENT_REACH = RATE  # the margin, and as much as the model errs by
_NO_MEMORY = ("memory", "allocate", "bad_alloc")  # native libraries say it in a plain RuntimeError
_NICENESS = 10  # the doors and the database come first

Emit = Callable[[Answer], None]


@frozen
class Listener:
    """Answers requests with the model of `folder`, which is loaded when speech is first met."""

    folder: Path
    threads: int
    _loaded: list[Model] = field(factory=list)

    def answer(self, asked: SliceAsked, emit: Emit) -> None:
        """Recognise one slice; the last answer is `Finished`."""
        bounds = Bounds(shortest=round(asked.shortest * RATE), longest=round(asked.longest * RATE))
        samples, total = read_samples(Path(asked.audio), asked.start_sample, bounds.longest + 1)
        speech = find_speech(samples[: bounds.longest])
        length = cut(samples, speech, bounds)
        emit(Cut(next_sample=asked.start_sample + length, total_samples=total))
        speech = within(speech, length)
        emit(self._recognise(samples[:length], speech, asked, emit) if speech else _silent())

    def _recognise(self, samples: Samples, speech: Sequence[Span], asked: SliceAsked, emit: Emit) -> Finished:
        model = self._model()
        wide = widened(speech, len(samples), pause=_KEPT_PAUSE, margin=_MARGIN, edge=_EDGE)
        packed = Packed(tuple(wide))
        audio = packed.audio(samples)
        language, probability = asked.language, None
        if language is None:
            language, probability = model.find_language(audio)
        model.check_language(language)
        recognise = partial(
            model.recognise, audio, language=language, beam_size=asked.beam_size, hotwords=asked.hotwords
        )
        hearing = Hearing(
            packed=packed, speech=speech, parting_pause=_PARTING_PAUSE, silent_reach=_SILENT_REACH
        )
        invented: list[Heard] = []
        for heard in tidy(_spoken(hearing.pieces(recognise), invented), packed):
            start, end = ((asked.start_sample + place) / RATE for place in (heard.start, heard.end))
            emit(Piece(start=start, end=end, text=heard.text))
        return Finished(
            language=language,
            probability=probability,
            speech_seconds=sum(end - start for start, end in speech) / RATE,
            invented=len(invented),
        )

    def _model(self) -> Model:
        if not self._loaded:
            self._loaded.append(Model(self.folder, self.threads))
        return self._loaded[0]


def _spoken(pieces: Iterator[Heard], invented: list[Heard]) -> Iterator[Heard]:
    """Pass on what was said and put the rest aside."""
    for piece in pieces:
        if piece.invented:
            invented.append(piece)
        else:
            yield piece


def _silent() -> Finished:
    return Finished(language=None, probability=None, speech_seconds=0.0, invented=0)


def read_samples(copy: Path, start: int, most: int) -> tuple[Samples, int]:
    """Read `most` samples or what there is from `start` on; return their mix and the copy's whole number."""
    samples, total = read_sides(copy, start, most)
    return mix_whole(samples), total


def _failure(error: Exception) -> Failed:
    match error:
        case OSError() | DamagedCopy():
            kind = FailureKind.AUDIO
        case ModelUnusable():
            kind = FailureKind.MODEL
        case LanguageUnknown():
            kind = FailureKind.LANGUAGE
        case MemoryError():
            kind = FailureKind.MEMORY
        case _ if any(sign in str(error) for sign in _NO_MEMORY):
            kind = FailureKind.MEMORY
        case _:
            kind = FailureKind.FAULT
    return Failed(kind=kind, reason=f"{type(error).__name__}: {error}")


def main(arguments: Sequence[str]) -> None:
    """Answer every request on stdin until it is closed."""
    folder, threads = arguments
    # Whatever a native library prints goes to stderr: stdout is for answers alone.
    with os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8") as answers:
        os.dup2(2, 1)
        os.nice(_NICENESS)

        def emit(answer: Answer) -> None:
            answers.write(json.dumps(answer_to_json(answer)) + "\n")

        listener = Listener(Path(folder), int(threads))
        for line in sys.stdin:
            try:
                listener.answer(request_from_json(json.loads(line)), emit)
            except Exception as error:  # noqa: BLE001 - whatever it is, our parent is told
                emit(_failure(error))


if __name__ == "__main__":
    main(sys.argv[1:])

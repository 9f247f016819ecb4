"""The process that holds a Whisper model: `python -m stages.recognisers.whisper_child MODEL THREADS`.

It takes requests on its stdin and answers on its stdout, a JSON line each (`whisper_messages`). Between
requests it keeps the model and nothing else, so that a record's text never depends on who came before it.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
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
from stages.recognisers.hearing import Heard, Hearing
from stages.recognisers.pieces import pieces
from stages.recognisers.slicing import Bounds, Samples, Span, cut, within
from stages.recognisers.two_sides import united, without_crosstalk
from stages.recognisers.whisper_messages import (
    Answer,
    Begun,
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
from stages.recognisers.windows import windows_of
from storage.record import Word

_NO_MEMORY = ("memory", "allocate", "bad_alloc")  # native libraries say it in a plain RuntimeError
_NICENESS = 10  # the doors and the database come first
_SIDES = ("left", "right")

Emit = Callable[[Answer], None]


@frozen(kw_only=True)
class Side:
    """One side of a slice, or the whole of one without sides."""

    name: str
    samples: Samples
    speech: list[Span]


@frozen
class Listener:
    """Answers requests with the model of `folder`, which is loaded when speech is first met."""

    folder: Path
    threads: int
    _loaded: list[Model] = field(factory=list)

    def answer(self, asked: SliceAsked, emit: Emit) -> None:
        """Recognise one slice; the last answer is `Finished`."""
        bounds = Bounds(shortest=round(asked.shortest * RATE), longest=round(asked.longest * RATE))
        samples, total = read_sides(Path(asked.audio), asked.start_sample, bounds.longest + 1)
        found = [find_speech(side[: bounds.longest]) for side in samples]
        length = cut(mix_whole(samples), united(found), bounds)
        emit(Cut(next_sample=asked.start_sample + length, total_samples=total))
        sides = _sides(samples[:, :length], [within(speech, length) for speech in found])
        emit(self._recognise(sides, asked, emit) if any(side.speech for side in sides) else _silent())

    def _recognise(self, sides: Sequence[Side], asked: SliceAsked, emit: Emit) -> Finished:
        model = self._model()
        emit(Begun())
        language, probability = asked.language, None
        if language is None:
            language, probability = model.find_language(
                [
                    window.audio(side.samples)
                    for side in sides
                    for window in windows_of(side.samples, side.speech)
                ]
            )
        model.check_language(language)
        recognise = partial(
            model.recognise,
            language=language,
            translate=asked.translate,
            beam_size=asked.beam_size,
            batch_size=asked.batch_size,
            hotwords=asked.hotwords,
        )
        heard = [
            (
                side.name,
                Hearing(
                    samples=side.samples,
                    speech=side.speech,
                    recognise=recognise,
                    follows_speech=not asked.translate,
                ).hear(),
            )
            for side in sides
            if side.speech
        ]
        for piece in _merged(heard, asked.start_sample):
            emit(piece)
        return Finished(
            language=language,
            probability=probability,
            speech_seconds=sum(end - start for side in sides for start, end in side.speech) / RATE,
            gap_seconds=sum(gap.end - gap.start for _, each in heard for gap in each.gaps) / RATE,
            again_seconds=sum(each.again for _, each in heard) / RATE,
            dropped=sum(each.dropped for _, each in heard),
        )

    def _model(self) -> Model:
        if not self._loaded:
            self._loaded.append(Model(self.folder, self.threads))
        return self._loaded[0]


def _sides(samples: Samples, found: Sequence[list[Span]]) -> list[Side]:
    """Return the sides of a slice, each with the speech that is its own."""
    if len(samples) == 1:
        return [Side(name="", samples=samples[0], speech=found[0])]
    return [
        Side(name=name, samples=own, speech=without_crosstalk(speech, own, other))
        for name, own, other, speech in zip(_SIDES, samples, samples[::-1], found, strict=True)
    ]


def _merged(heard: Sequence[tuple[str, Heard]], first: int) -> list[Piece]:
    """Return the pieces and gaps of all sides by their time, in seconds of the audio."""

    def seconds(place: int) -> float:
        return (first + place) / RATE

    found: list[Piece] = []
    for side, each in heard:
        for piece in pieces(each.words):
            words = tuple(
                Word(
                    start=seconds(word.start),
                    end=seconds(word.end),
                    text=word.text.strip(),
                    probability=round(word.probability, 3),
                )
                for word in piece.words
            )
            start, end = seconds(piece.start), seconds(piece.end)
            found.append(Piece(start=start, end=end, text=piece.text, words=words, side=side))
        found += [
            Piece(start=seconds(gap.start), end=seconds(gap.end), text="", side=side, gap=gap.why)
            for gap in each.gaps
        ]
    return sorted(found, key=lambda piece: (piece.start, piece.end, piece.side))


def _silent() -> Finished:
    return Finished(
        language=None, probability=None, speech_seconds=0.0, gap_seconds=0.0, again_seconds=0.0, dropped=0
    )


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

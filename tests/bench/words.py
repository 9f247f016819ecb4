"""Words that are wrong or missing in long recordings whose words are known, beside bare faster-whisper.

The truth is the list of what was joined, not a detector of ours. A hole is speech of two seconds or more
that has neither its words nor a mark.
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import jiwer
import numpy as np
from attrs import frozen
from faster_whisper import BatchedInferencePipeline, WhisperModel

from stages.media.wave64 import Writer
from stages.recognisers.models import find_model
from stages.recognisers.whisper_child import Listener
from stages.recognisers.whisper_messages import Cut, Piece, SliceAsked
from tests.bench.audio import LANGUAGE, RATE
from tests.bench.joined import Joined, join, known_clips, words_of
from tests.bench.program import prepared_state
from tests.bench.table import load, say, show

BEAM, BATCH, THREADS = 5, 8, 1
SHORTEST, LONGEST = 120.0, 300.0
_HOLE_SECONDS = 2.0
_OURS = "rubezh"
_LOUD = 0.08  # of a clip's loudest hundredth of a second: where its speech begins and ends
_BARE: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "vad": {"vad_filter": True},
    "unconditioned": {"condition_on_previous_text": False},
    "vad, unconditioned": {"vad_filter": True, "condition_on_previous_text": False},
    "batched": {"batch_size": BATCH},
}


@frozen(kw_only=True)
class Heard:
    """What was heard: the text, marks as pairs of seconds, words with the seconds they begin and end at."""

    text: str
    cpu: float
    marks: Sequence[tuple[float, float]] = ()
    words: Sequence[tuple[float, float]] = ()


@frozen(kw_only=True)
class Score:
    """How one recording came out; `off` are the errors of times, in seconds."""

    wer: float
    deleted: int
    holes: int
    cpu: float
    off: Sequence[float]


def run(recordings: int, seconds: float) -> None:
    """Measure and print."""
    clips = known_clips()
    if not clips:
        say("  no recordings with known words are here; name their folder in RUBEZH_AUDIO")
        return
    before = load()
    scores: dict[str, list[Score]] = {way: [] for way in (_OURS, *_BARE)}
    with prepared_state() as folder:
        model = find_model("base", folder / "state" / "models")
        bare = WhisperModel(
            str(model), device="cpu", compute_type="int8", cpu_threads=THREADS, local_files_only=True
        )
        for seed in range(1, recordings + 1):
            joined = join(clips, seconds, seed)
            ways: dict[str, Callable[[], Heard]] = {_OURS: partial(_ours, model, joined)}
            ways |= {name: partial(_bare, bare, joined, name) for name in _BARE}
            for way, hear in ways.items():
                score = _score(joined, hear())
                scores[way].append(score)
                told = f"{score.wer:.2f} % wrong, {score.deleted} deleted, {score.holes} holes"
                say(f"  recording {seed}, {way}: {told}, load {load()}")
    _tell(scores, recordings, seconds, before)


def _ours(model: Path, joined: Joined) -> Heard:
    pieces: list[Piece] = []
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "audio.w64"
        with Writer(copy, 1) as writer:
            writer.write(joined.samples)
            writer.finish()
        listener, began, at, total = Listener(model, THREADS), time.process_time(), 0, 1
        while at < total:
            answers: list[Any] = []
            listener.answer(_asked(copy, at), answers.append)
            pieces += [each for each in answers if isinstance(each, Piece)]
            [cut] = [each for each in answers if isinstance(each, Cut)]
            at, total = cut.next_sample, cut.total_samples
    return Heard(
        text=" ".join(piece.text for piece in pieces),
        cpu=time.process_time() - began,
        marks=[(piece.start, piece.end) for piece in pieces if piece.gap is not None],
        words=[(word.start, word.end) for piece in pieces for word in piece.words],
    )


def _asked(copy: Path, start: int) -> SliceAsked:
    return SliceAsked(
        audio=str(copy),
        start_sample=start,
        language=LANGUAGE,
        translate=False,
        hotwords="",
        beam_size=BEAM,
        batch_size=BATCH,
        shortest=SHORTEST,
        longest=LONGEST,
    )


def _bare(model: WhisperModel, joined: Joined, name: str) -> Heard:
    audio, began = joined.samples.astype(np.float32) / 32768, time.process_time()
    way = BatchedInferencePipeline(model) if "batch_size" in _BARE[name] else model
    segments, _ = way.transcribe(audio, language=LANGUAGE, beam_size=BEAM, **_BARE[name])
    text = " ".join(segment.text for segment in segments)
    return Heard(text=text, cpu=time.process_time() - began)


def _score(joined: Joined, heard: Heard) -> Score:
    truth = [word for said in joined.said for word in said.words]
    compared = jiwer.process_words([" ".join(truth)], [" ".join(words_of(heard.text)) or "-"])
    return Score(
        wer=compared.wer * 100,
        deleted=compared.deletions,
        holes=sum(1 for hole in _holes(joined, compared.alignments[0]) if not _is_marked(hole, heard.marks)),
        cpu=heard.cpu,
        off=list(_off(joined, heard.words)),
    )


def _holes(joined: Joined, alignment: Iterable[Any]) -> list[tuple[float, float]]:
    """Return the stretches of a clip, of two seconds or more, whose words are missing."""
    places = [
        (said, said.start + (said.end - said.start) * place / len(said.words))
        for said in joined.said
        for place in range(len(said.words))
    ]
    found: list[tuple[float, float]] = []
    for chunk in alignment:
        if chunk.type != "delete":
            continue
        deleted = places[chunk.ref_start_idx : chunk.ref_end_idx]
        for said in dict.fromkeys(said for said, _ in deleted):
            starts = [start for each, start in deleted if each is said]
            step = (said.end - said.start) / len(said.words)
            found.append((starts[0], starts[-1] + step))
    return [(start, end) for start, end in found if end - start >= _HOLE_SECONDS]


def _is_marked(hole: tuple[float, float], marks: Iterable[tuple[float, float]]) -> bool:
    return any(start < hole[1] and end > hole[0] for start, end in marks)


def _off(joined: Joined, words: Sequence[tuple[float, float]]) -> Iterable[float]:
    """Yield by how much the first word of each clip begins, and the last one ends, too early or too late."""
    for said in joined.said:
        inside = [word for word in words if said.start - 0.4 <= sum(word) / 2 <= said.end + 0.4]
        if inside:
            first, last = _spoken(joined, said.start, said.end)
            yield from (abs(inside[0][0] - first), abs(inside[-1][1] - last))


def _spoken(joined: Joined, start: float, end: float) -> tuple[float, float]:
    step = RATE // 100
    samples = np.abs(joined.samples[round(start * RATE) : round(end * RATE)].astype(float))
    levels = samples[: len(samples) // step * step].reshape(-1, step).mean(axis=1)
    loud = np.flatnonzero(levels > _LOUD * levels.max())
    return start + loud[0] / 100, start + (loud[-1] + 1) / 100


def _tell(scores: Mapping[str, Sequence[Score]], recordings: int, seconds: float, before: str) -> None:
    hours = seconds / 3600
    rows = [
        (
            way,
            mean(score.wer for score in each),
            sum(score.deleted for score in each),
            sum(score.holes for score in each),
            median(score.cpu for score in each) / hours,
        )
        for way, each in scores.items()
    ]
    off = sorted(seconds for score in scores[_OURS] for seconds in score.off)
    late = off[min(len(off) - 1, int(0.95 * len(off)))]
    show(
        f"Words, {recordings} recordings of {seconds / 60:g} minutes, one thread",
        ("", "wrong, %", "deleted", "holes", "CPU s an hour"),
        rows,
        (
            f"our times are off by {median(off):.3f} s at the median, {late:.3f} s at 95 of 100",
            f"load before {before}, after {load()}",
        ),
    )

"""CPU seconds of the whole pipeline, every process of it, around those of bare faster-whisper.

Both transcribe the same speech, turn by turn, in processes of their own. A recording of a second shows what a
start costs (interpreter, database, model); the rest is what the audio costs.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import jiwer

from stages.recognisers.models import find_model
from tests.bench.audio import speech_files, write_joined
from tests.bench.program import SHORT_SECONDS, Cost, prepared_state, run_accounted, transcription
from tests.bench.table import load, say, show


def run(rounds: int, seconds: float) -> None:
    """Measure and print."""
    before = load()
    with prepared_state() as folder:
        model = find_model("base", folder / "state" / "models")
        ways: dict[str, Callable[[Path], list[str]]] = {
            "rubezh": lambda recording: transcription(folder / "state", recording),
            "bare": lambda recording: [sys.executable, "-m", "tests.bench.bare", str(model), str(recording)],
        }
        starts: dict[str, list[Cost]] = {way: [] for way in ways}
        wholes: dict[str, list[Cost]] = {way: [] for way in ways}
        for number in range(rounds):
            short, whole = folder / f"short-{number}.wav", folder / f"whole-{number}.wav"
            # The same bytes would be the same record, done already; the mark makes each round's its own.
            write_joined(short, SHORT_SECONDS, number + 2)
            write_joined(whole, seconds, number + 2)
            for way in sorted(ways, reverse=bool(number % 2)):
                starts[way].append(run_accounted(ways[way](short)))
                wholes[way].append(run_accounted(ways[way](whole)))
                say(f"  round {number + 1}, {way}: {wholes[way][-1].cpu:.1f} CPU s, load {load()}")
            short.unlink()
            whole.unlink()
    _tell(starts, wholes, seconds, before)


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def _per_thousand_words(costs: list[Cost]) -> float:
    return median(cost.cpu / len(cost.printed.split()) * 1000 for cost in costs)


def _tell(starts: dict[str, list[Cost]], wholes: dict[str, list[Cost]], seconds: float, before: str) -> None:
    rows = []
    for way, costs in wholes.items():
        start, whole = median(cost.cpu for cost in starts[way]), median(cost.cpu for cost in costs)
        wall = median(cost.wall for cost in costs)
        rows.append((way, start, whole - start, whole, _per_thousand_words(costs), wall))
    totals = [ours.cpu / theirs.cpu for ours, theirs in zip(wholes["rubezh"], wholes["bare"], strict=True)]
    works = [
        (ours.cpu - our_start.cpu) / (theirs.cpu - their_start.cpu)
        for ours, our_start, theirs, their_start in zip(
            wholes["rubezh"], starts["rubezh"], wholes["bare"], starts["bare"], strict=True
        )
    ]
    ours, theirs = (_words(wholes[way][-1].printed) for way in ("rubezh", "bare"))
    different = jiwer.wer(" ".join(theirs), " ".join(ours))
    show(
        f"The whole pipeline around the bare model, {seconds / 60:g} minutes of speech, medians",
        (
            "",
            "CPU s to start",
            "CPU s for the audio",
            "CPU s in all",
            "CPU s for 1000 words",
            "wall s in all",
        ),
        rows,
        (
            f"rubezh / bare, in all: {median(totals):.3f} (each round: {_listed(totals)})",
            f"rubezh / bare, for the audio: {median(works):.3f} (each round: {_listed(works)})",
            f"words: {len(ours)} and {len(theirs)}, {different:.1%} of them different",
            f"{len(totals)} rounds, {len(speech_files())} clips joined; load before {before}, after {load()}",
        ),
    )


def _listed(ratios: list[float]) -> str:
    return ", ".join(f"{ratio:.3f}" for ratio in ratios)

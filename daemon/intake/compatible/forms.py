"""A record's text in the forms that OpenAI's clients read. No I/O.

What a recogniser here does not tell (tokens, the probability of silence) is left out, and not made up.
"""

import json
import math
import zlib
from collections.abc import Sequence
from typing import Any

from daemon.intake.compatible.wish import Wish
from daemon.transcript import srt, vtt
from storage.readiness import Readiness
from storage.record import Segment, Word

_JSON = "application/json"
MEDIA = {
    "json": _JSON,
    "verbose_json": _JSON,
    "text": "text/plain; charset=utf-8",
    "srt": "application/x-subrip; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
}


def answered(wish: Wish, readiness: Readiness, segments: Sequence[Segment]) -> str:
    """Return the text of a record that is done, as it was wished for."""
    text = readiness.text or ""
    match wish.form:
        case "text":
            return f"{text}\n"
        case "srt":
            return srt(segments)
        case "vtt":
            return vtt(segments)
        case "verbose_json":
            return _json(_verbose(wish, readiness, segments))
        case _:
            return _json({"text": text, "usage": usage(readiness)})


def usage(readiness: Readiness) -> dict[str, Any]:
    """Return what was worked on: so many seconds of audio."""
    return {"type": "duration", "seconds": math.ceil(readiness.audio_seconds or 0.0)}


def _verbose(wish: Wish, readiness: Readiness, segments: Sequence[Segment]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "task": "translate" if wish.translated else "transcribe",
        "language": readiness.found_language or readiness.asked_language or "",
        "duration": readiness.audio_seconds or 0.0,
        "text": readiness.text or "",
        "usage": usage(readiness),
    }
    if "segment" in wish.granularities:
        shown["segments"] = [_segment(number, each) for number, each in enumerate(segments)]
    if "word" in wish.granularities:
        shown["words"] = [
            {"word": word.text.strip(), "start": word.start, "end": word.end}
            for each in segments
            for word in each.words
        ]
    return shown


def _segment(number: int, segment: Segment) -> dict[str, Any]:
    encoded = segment.text.encode("utf-8", "replace")
    shown = {
        "id": number,
        "start": segment.start,
        "end": segment.end,
        "text": segment.text,
        "compression_ratio": round(len(encoded) / len(zlib.compress(encoded)), 3),
    }
    return shown | ({"avg_logprob": round(_mean_logarithm(segment.words), 3)} if segment.words else {})


def _mean_logarithm(words: Sequence[Word]) -> float:
    return sum(math.log(max(word.probability, 1e-10)) for word in words) / len(words)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)

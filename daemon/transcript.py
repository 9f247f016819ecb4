"""A record's text as a file: plain text, SubRip, WebVTT, tab-separated values or JSON.

The times in a `Segment` are finite seconds from the start of the recording. Text comes from a recogniser
and is trusted with nothing: whatever a format would read as its own syntax is made harmless.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from typing import Any

from attrs import frozen

from storage.record import Segment

NO_TEXT = "[…]"  # stands for speech that has no text
PARAGRAPH_PAUSE = 2.0  # seconds of silence that begin a new paragraph in plain text
JSON_VERSION = 1

# What must not reach a file: control characters, lone surrogates, byte order marks and noncharacters.
_HARMFUL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_ARROW = "-->"


About = Mapping[str, Any]
"""What is known of a record beside its text, by name."""

NOBODY: About = {}


@frozen(kw_only=True)
class Cue:
    """A piece of text on the screen, in milliseconds; it is never empty and never ends as it begins."""

    start: int
    end: int
    text: str
    who: str


def plain_text(segments: Iterable[Segment], about: About = NOBODY) -> str:
    """Return the text in paragraphs, one a line with an empty line between; "" when there is none.

    Where sides are told apart, each turn is a paragraph that begins with its name.
    """
    said = [segment for segment in _in_order(segments) if _said(segment)]
    if not said:
        return ""
    parts = [_named(said[0], about), _said(said[0])]
    for before, after in pairwise(said):
        is_turn = before.side != after.side
        parts.append("\n\n" if is_turn or after.start - before.end >= PARAGRAPH_PAUSE else " ")
        parts += [_named(after, about) if is_turn else "", _said(after)]
    return "".join((*parts, "\n"))


def srt(segments: Iterable[Segment], about: About = NOBODY) -> str:
    """Return the text as SubRip subtitles; whoever is known speaks by name."""
    return "\n".join(
        f"{number}\n{_times(cue, ',')}\n{_spoken(cue).replace(_ARROW, '→')}\n"
        for number, cue in enumerate(cues(segments, about), 1)
    )


def vtt(segments: Iterable[Segment], about: About = NOBODY) -> str:
    """Return the text as WebVTT subtitles, the voices named."""
    shown = (f"{_times(cue, '.')}\n{_voice(cue)}{_escaped(cue.text)}\n" for cue in cues(segments, about))
    return "\n".join(("WEBVTT\n", *shown))


def tsv(segments: Iterable[Segment]) -> str:
    """Return the text as tab-separated values: milliseconds of start and end, and text, below their heads."""
    lines = (f"{cue.start}\t{cue.end}\t{cue.text}\n" for cue in cues(segments))
    return "".join(("start\tend\ttext\n", *lines))


def json_text(segments: Sequence[Segment], about: About) -> str:
    """Return one line of JSON: `version`, all that is said `about` it, `text`, `segments` with words."""
    ordered = list(_in_order(segments))
    document = {
        "version": JSON_VERSION,
        **about,
        "text": plain_text(ordered, about).removesuffix("\n"),
        "segments": [
            {
                "id": f"{segment.slice}.{segment.number}",
                "start": segment.start,
                "end": segment.end,
                "text": _clean(segment.text),
                "side": segment.side or None,
                "gap": segment.gap,
                "words": [
                    {
                        "start": word.start,
                        "end": word.end,
                        "text": _clean(word.text),
                        "probability": word.probability,
                    }
                    for word in segment.words
                ],
            }
            for segment in ordered
        ],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"


Exporter = Callable[[Sequence[Segment], About], str]
EXPORTERS: Mapping[str, Exporter] = {
    "txt": plain_text,
    "srt": srt,
    "vtt": vtt,
    "tsv": lambda segments, _: tsv(segments),
    "json": json_text,
}


def cues(segments: Iterable[Segment], about: About = NOBODY) -> Iterator[Cue]:
    """Return what is to be shown, in the order of its beginning, silent segments left out."""
    for segment in _in_order(segments):
        text = _said(segment)
        if text:
            start = _milliseconds(segment.start)
            # A player drops a cue that ends as it begins, and its words with it.
            yield Cue(
                start=start,
                end=max(_milliseconds(segment.end), start + 1),
                text=text,
                who=who_of(segment.side, about),
            )


def who_of(side: str, about: About) -> str:
    """Return who is on a side, as the owner says; empty where sides are not told apart."""
    return _one_line(str(about.get(f"{side}_name") or side.capitalize())) if side else ""


def _named(segment: Segment, about: About) -> str:
    who = who_of(segment.side, about)
    return f"{who}: " if who else ""


def _spoken(cue: Cue) -> str:
    return f"{cue.who}: {cue.text}" if cue.who else cue.text


def _voice(cue: Cue) -> str:
    return f"<v {_escaped(cue.who)}>" if cue.who else ""


def _said(segment: Segment) -> str:
    """Return the text of a segment in one line; the mark of a gap where there is none, which says as much."""
    return _one_line(segment.text) or (NO_TEXT if segment.gap is not None else "")


def _in_order(segments: Iterable[Segment]) -> list[Segment]:
    return sorted(segments, key=lambda segment: segment.start)


def _milliseconds(seconds: float) -> int:
    # By way of the digits a person would see: 1.0005 is a little less than that in binary.
    exact = Decimal(repr(float(seconds))) * 1000
    return max(0, int(exact.to_integral_value(rounding=ROUND_HALF_UP)))


def _times(cue: Cue, separator: str) -> str:
    return f"{_clock(cue.start, separator)} {_ARROW} {_clock(cue.end, separator)}"


def _clock(milliseconds: int, separator: str) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{separator}{rest:03}"


def _clean(text: str) -> str:
    return _HARMFUL.sub("", text)


def _one_line(text: str) -> str:
    return " ".join(_clean(text).split())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

"""The options of a submission: from names and texts, with every fault told at once. No I/O."""

import re
from collections.abc import Iterable

from attrs import frozen

from daemon.intake.queries import Parameter
from storage.errors import SubmissionRefused

CHANNELS = ("mix", "split", "auto")
MOST_LETTERS = {"filename": 1024, "title": 500, "description": 10_000, "hotwords": 5_000}
MOST_TOPICS, MOST_TOPIC_LETTERS = 50, 100
LAST_TRACK = 999
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})*")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_KNOWN = (
    "filename",
    "language",
    "title",
    "description",
    "topics",
    "channels",
    "track",
    "hotwords",
    "translate",
)

_TEXT = {"type": "string", "pattern": "^[^\\x00]*$"}
OPTION_PARAMETERS = (
    *(
        Parameter(name=name, says=says, schema={**_TEXT, "maxLength": MOST_LETTERS[name]})
        for name, says in (
            ("filename", "What the recording is called; text, and nothing else."),
            ("title", "For its owner."),
            ("description", "For its owner."),
            ("hotwords", "Words and names that are likely to be said."),
        )
    ),
    Parameter(
        name="topics",
        says="For its owner; may be given many times.",
        schema={**_TEXT, "maxLength": MOST_TOPIC_LETTERS},
        repeats=True,
    ),
    Parameter(
        name="language",
        says="What is spoken, such as `ru` or `en`; `auto`, or none, has it found out.",
        schema={"type": "string", "pattern": f"^(auto|{_LANGUAGE.pattern})?$"},
    ),
    Parameter(
        name="channels",
        says="Of two channels: their `mix`, a side each (`split`), or that where it is a call (`auto`).",
        schema={"type": "string", "enum": [*CHANNELS, ""]},
    ),
    Parameter(
        name="track",
        says="Which audio track of the file, from 0 on; without it the first in which something is heard.",
        schema={"type": "integer", "minimum": 0, "maximum": LAST_TRACK},
    ),
    Parameter(
        name="translate",
        says="`true`: the text is to be in English, whatever is spoken.",
        schema={"type": "string", "enum": ["true", "false", ""]},
    ),
)


@frozen(kw_only=True)
class Options:
    """What a sender may say about a recording; a file name is text and nothing else."""

    filename: str = "recording"
    asked_language: str | None = None
    title: str = ""
    description: str = ""
    topics: tuple[str, ...] = ()
    channels: str = "auto"
    track: int | None = None
    hotwords: str = ""
    translate: bool = False


def read_options(given: Iterable[tuple[str, str]]) -> Options:
    """Return the options of these names and texts; `topics` may repeat, an empty text is one not given.

    Raises SubmissionRefused (`invalid_options`) with a phrase for each fault.
    """
    texts: dict[str, list[str]] = {}
    for name, text in given:
        texts.setdefault(name, []).append(text)
    faults = [
        f"{name!a} is no option (there are {', '.join(_KNOWN)})" for name in texts if name not in _KNOWN
    ]
    faults += [f"{name} is given {len(all_)} times" for name, all_ in texts.items() if _repeats(name, all_)]
    topics = tuple(topic for topic in texts.get("topics", ()) if topic)
    one = {name: all_[0] for name, all_ in texts.items() if name in _KNOWN and name != "topics" and all_[0]}
    language = one.get("language", "").lower()
    for name, text in one.items():
        faults += _text_faults(name, text, MOST_LETTERS.get(name, MOST_TOPIC_LETTERS))
    for topic in topics:
        faults += _text_faults("a topic", topic, MOST_TOPIC_LETTERS)
    if len(topics) > MOST_TOPICS:
        faults.append(f"there are {len(topics)} topics, and {MOST_TOPICS} is the most")
    if language not in ("", "auto") and not _LANGUAGE.fullmatch(language):
        faults.append("language must be a code like en or pt-br, or auto")
    if one.get("channels", "auto") not in CHANNELS:
        faults.append(f"channels must be one of {', '.join(CHANNELS)}")
    if one.get("translate", "false") not in ("true", "false"):
        faults.append("translate must be true or false")
    track = _track(one.get("track"))
    if track == _NO_TRACK:
        faults.append(f"track must be a whole number from 0 to {LAST_TRACK}")
    if faults:
        raise SubmissionRefused("invalid_options", "; ".join(faults))
    return Options(
        filename=one.get("filename", "recording"),
        asked_language=None if language in ("", "auto") else language,
        title=one.get("title", ""),
        description=one.get("description", ""),
        topics=topics,
        channels=one.get("channels", "auto"),
        track=track,
        hotwords=one.get("hotwords", ""),
        translate=one.get("translate") == "true",
    )


def storable(text: str) -> str:
    """Return a text with what no database takes replaced: for names that nobody typed, like a file's own."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


_NO_TRACK = -1


def _track(text: str | None) -> int | None:
    if text is None:
        return None
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(LAST_TRACK))
    return int(text) if plain else _NO_TRACK


def _repeats(name: str, texts: list[str]) -> bool:
    return name in _KNOWN and name != "topics" and len(texts) > 1


def _text_faults(name: str, text: str, most: int) -> list[str]:
    faults = []
    if "\x00" in text:
        faults.append(f"{name} holds a NUL character")
    elif _UNSTORABLE.search(text):
        faults.append(f"{name} is no valid Unicode text")
    if len(text) > most:
        faults.append(f"{name} has {len(text)} letters, and {most} is the most")
    return faults

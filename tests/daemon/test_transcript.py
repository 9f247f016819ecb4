"""What a transcript file says can be read back by anybody who knows the format."""

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.transcript import EXPORTERS, cues, json_text, plain_text, srt, tsv, vtt
from storage.record import Gap, Segment, Word

CLOCK = re.compile(r"(\d{2,}):([0-5]\d):([0-5]\d)([,.])(\d{3})")


def segment(start: float, end: float, text: str, *words: Word) -> Segment:
    """Return a segment whose place in its slice does not matter."""
    return Segment(slice=0, number=0, start=start, end=end, text=text, words=words)


def read_clock(text: str, separator: str) -> int:
    """Return the milliseconds of a time as the format writes it."""
    match = CLOCK.fullmatch(text)
    assert match is not None, text
    assert match[4] == separator
    return ((int(match[1]) * 60 + int(match[2])) * 60 + int(match[3])) * 1000 + int(match[5])


def read_cues(blocks: list[str], separator: str) -> list[tuple[int, int, str]]:
    """Return (start, end, text) of blocks that are a line of times and a line of text."""
    found = []
    for block in blocks:
        times, text = block.split("\n")
        start, end = times.split(" --> ")
        found.append((read_clock(start, separator), read_clock(end, separator), text))
    return found


def read_srt(text: str) -> list[tuple[int, int, str]]:
    """Read SubRip: numbered blocks with empty lines between them."""
    if not text:
        return []
    assert text.endswith("\n")
    numbered = [block.partition("\n") for block in text.removesuffix("\n").split("\n\n")]
    assert [number for number, _, _ in numbered] == [str(n + 1) for n in range(len(numbered))]
    return read_cues([block for _, _, block in numbered], ",")


def read_vtt(text: str) -> list[tuple[int, int, str]]:
    """Read WebVTT: a header and blocks, entities in the text."""
    assert text.endswith("\n")
    header, *blocks = text.removesuffix("\n").split("\n\n")
    assert header == "WEBVTT"
    return [(start, end, html.unescape(said)) for start, end, said in read_cues(blocks, ".")]


pieces = [
    "-->",
    "->",
    "-",
    ">",
    "<b>",
    "&amp;",
    "&",
    "\n",
    "\n\n",
    "\r",
    "\0",
    "\ufeff",
    "\u2028",
    "\ud800",
    "\x0b",
]
pieces += ["1", "00:00:01,000 --> 00:00:02,000", "WEBVTT", "NOTE", "слово", " ", "\x1b[2J", "\uffff"]
hostile = st.text(max_size=40) | st.lists(st.sampled_from(pieces), max_size=8).map("".join)
seconds = st.floats(min_value=0, max_value=500_000, allow_nan=False)
segments_of_any_kind = st.lists(st.builds(segment, seconds, seconds, hostile), max_size=8)


@given(segments_of_any_kind)
def test_subtitles_can_be_read_back(segments: list[Segment]) -> None:
    """Whatever the words, as many cues come back as went in, each with its times and text, in order."""
    meant = [(cue.start, cue.end, cue.text) for cue in cues(segments)]
    assert read_srt(srt(segments)) == [(start, end, text.replace("-->", "→")) for start, end, text in meant]
    assert read_vtt(vtt(segments)) == meant
    assert [start for start, _, _ in meant] == sorted(start for start, _, _ in meant)
    assert all(start < end for start, end, _ in meant)


@given(segments_of_any_kind)
def test_every_file_is_utf_8_without_control_characters(segments: list[Segment]) -> None:
    """A terminal, an editor and a database can be given any of them."""
    for exporter in EXPORTERS.values():
        text = exporter(segments, {})
        assert text.encode("utf-8").decode("utf-8") == text
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ufeff]", text)


@given(segments_of_any_kind)
def test_the_arrow_stands_between_times_alone(segments: list[Segment]) -> None:
    """No word can be taken for a line of times."""
    count = len(list(cues(segments)))
    assert srt(segments).count("-->") == count
    assert vtt(segments).count("-->") == count


@given(segments_of_any_kind)
def test_no_word_is_lost_or_changes_its_place(segments: list[Segment]) -> None:
    """Plain text has the words of all cues, in their order."""
    assert plain_text(segments).split() == [word for cue in cues(segments) for word in cue.text.split()]


@given(st.integers(min_value=0, max_value=10**9))
def test_a_time_of_whole_milliseconds_is_kept_exactly(milliseconds: int) -> None:
    """Binary fractions never show."""
    ((start, _, _),) = read_srt(srt([segment(milliseconds / 1000, milliseconds / 1000 + 1, "x")]))
    assert start == milliseconds


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (0.0, "00:00:00,000"),
        (0.0004999, "00:00:00,000"),
        (0.0005, "00:00:00,001"),
        (0.9995, "00:00:01,000"),
        (1.0005, "00:00:01,001"),
        (2.5e-5, "00:00:00,000"),
        (59.9996, "00:01:00,000"),
        (3599.9995, "01:00:00,000"),
        (359999.9995, "100:00:00,000"),
        (-0.25, "00:00:00,000"),
    ],
)
def test_rounding_carries_over(at: float, written: str) -> None:
    """Halves go up, and a full second, minute or hundredth hour is written as one."""
    assert srt([segment(at, at + 5, "x")]).startswith(f"1\n{written} --> ")


def test_a_cue_lasts_at_least_a_millisecond() -> None:
    """Players drop a cue of no length, and its words with it."""
    assert srt([segment(1, 1, "x"), segment(3, 2, "y")]) == (
        "1\n00:00:01,000 --> 00:00:01,001\nx\n\n2\n00:00:03,000 --> 00:00:03,001\ny\n"
    )


def test_an_empty_transcript_is_a_valid_file() -> None:
    """Silence is no fault; silent segments are none either."""
    for segments in ([], [segment(0, 1, " \n\0\ufeff")]):
        assert plain_text(segments) == ""
        assert srt(segments) == ""
        assert vtt(segments) == "WEBVTT\n"
        assert json.loads(json_text(segments, {}))["text"] == ""


def test_a_pause_of_two_seconds_begins_a_paragraph() -> None:
    """Shorter ones do not, and silent segments do not hide a pause."""
    said = [
        segment(0, 1, " One."),
        segment(2.9, 4, " Two.\n"),
        segment(5, 5.5, " "),
        segment(6, 7, "Three."),
    ]
    assert plain_text(said) == "One. Two.\n\nThree.\n"


def test_web_vtt_shows_markup_as_it_was_said() -> None:
    """Tags and entities are text here."""
    assert vtt([segment(0, 1, "a <b> & c --> d")]) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\na &lt;b&gt; &amp; c --&gt; d\n"
    )


CALL = (
    Segment(slice=0, number=0, start=0.0, end=1.0, text=" Hello.", side="left"),
    Segment(slice=0, number=1, start=1.1, end=2.0, text=" It's me.", side="left"),
    Segment(slice=0, number=2, start=2.1, end=3.0, text=" Who?", side="right"),
)


def test_each_turn_of_a_call_has_its_name() -> None:
    """As its owner says, harmless in every form; the sides' own names where nobody was named."""
    about = {"left_name": "Anna\n<b> --> ", "right_name": ""}
    assert plain_text(CALL, about) == "Anna <b> -->: Hello. It's me.\n\nRight: Who?\n"
    assert "\nAnna <b> →: Hello.\n" in srt(CALL, about)
    assert "\n<v Anna &lt;b&gt; --&gt;>Hello.\n" in vtt(CALL, about)
    assert "\n<v Right>Who?\n" in vtt(CALL, about)
    assert "Anna" not in tsv(CALL)
    told = json.loads(json_text(CALL, about))
    assert [each["side"] for each in told["segments"]] == ["left", "left", "right"]
    assert plain_text(CALL).startswith("Left: Hello.")


def test_json_holds_everything_known() -> None:
    """Times stay exact seconds, words keep their own times, the version comes first."""
    word = Word(start=0.1, end=0.7, text=" Привет", probability=0.75)
    text = json_text([segment(0.1, 0.9, " Привет.", word)], {"filename": "а.wav", "language": "ru"})
    assert text.startswith('{"version": 1, ')
    assert "Привет" in text
    assert json.loads(text) == {
        "version": 1,
        "filename": "а.wav",
        "language": "ru",
        "text": "Привет.",
        "segments": [
            {
                "id": "0.0",
                "start": 0.1,
                "end": 0.9,
                "text": " Привет.",
                "side": None,
                "gap": None,
                "words": [{"start": 0.1, "end": 0.7, "text": " Привет", "probability": 0.75}],
            }
        ],
    }


def test_speech_without_text_is_marked_in_every_form() -> None:
    """Nobody takes a text with a hole for a whole one; a correction by its owner takes the mark's place."""
    gap = Segment(slice=0, number=1, start=2.0, end=4.0, text="", gap=Gap.NO_TEXT)
    segments = [segment(0.0, 1.5, "One."), gap, segment(4.2, 5.0, "Two.")]
    assert plain_text(segments) == "One. […] Two.\n"
    assert [(start, text) for start, _, text in read_srt(srt(segments))][1] == (2000, "[…]")
    assert [text for _, _, text in read_vtt(vtt(segments))] == ["One.", "[…]", "Two."]
    assert "2000\t4000\t[…]\n" in tsv(segments)
    said = json.loads(json_text(segments, {}))
    assert [each["gap"] for each in said["segments"]] == [None, "no_text", None]
    assert said["text"] == "One. […] Two."
    corrected = Segment(slice=0, number=1, start=2.0, end=4.0, text="And a half.", gap=Gap.NO_TEXT)
    assert plain_text([corrected]) == "And a half.\n"

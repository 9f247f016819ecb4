"""Which speech has no text."""

from hypothesis import given
from hypothesis import strategies as st

from stages.media.wave64 import RATE
from stages.recognisers.coverage import LEAST_HOLE, holes, length, within
from stages.recognisers.pieces import HeardWord
from stages.recognisers.slicing import Span

SPEECH = [(0, 4 * RATE), (6 * RATE, 10 * RATE), (20 * RATE, 24 * RATE)]


def a_word(start: float, end: float, text: str = "word") -> HeardWord:
    """A word by its seconds."""
    return HeardWord(start=round(start * RATE), end=round(end * RATE), text=text, probability=0.9)


def spoken(start: float, end: float) -> list[HeardWord]:
    """Words one after the other, half a second each."""
    return [a_word(start + n / 2, start + (n + 1) / 2) for n in range(round((end - start) * 2))]


def test_speech_that_has_its_words_has_no_hole() -> None:
    """Nor where a word is a quarter of a second off."""
    assert holes(SPEECH, [*spoken(0, 4), *spoken(6.2, 10), *spoken(20, 23.8)]) == []


def test_speech_without_a_word_is_a_hole() -> None:
    """Also where it is but a part of what somebody says."""
    assert holes(SPEECH, [*spoken(0, 4), *spoken(20, 24)]) == [(6 * RATE, 10 * RATE)]
    ((start, end),) = holes(SPEECH, [*spoken(0, 4), *spoken(6, 7.5), *spoken(20, 24)])
    assert (start, end) == (7.75 * RATE, 10 * RATE)


def test_a_word_accounts_for_no_more_than_it_can_take() -> None:
    """One that is drawn out over ten seconds hides a hole."""
    found = holes([(0, 10 * RATE)], [a_word(0, 10, "no")])
    assert found
    assert length(found) > 8 * RATE


def test_holes_a_breath_apart_are_one() -> None:
    """Many small ones in a row are a large one, from speech to speech."""
    speech = [(n * RATE, n * RATE + RATE // 3) for n in range(6)]
    assert holes(speech, []) == [(0, speech[-1][1])]
    assert holes(speech[:1], []) == []


SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=8).map(
    lambda pairs: _in_order([(gap * RATE // 2, long * RATE // 4) for gap, long in pairs])
)


def _in_order(pairs: list[tuple[int, int]]) -> list[Span]:
    at, spans = 0, []
    for gap, long in pairs:
        spans.append((at + gap + 1, at + gap + 1 + long))
        at = spans[-1][1]
    return spans


@given(SPANS, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), max_size=10))
def test_no_speech_is_lost_between_words_and_holes(speech: list[Span], said: list[tuple[int, int]]) -> None:
    """Every stretch of some length is under a word or in a hole, and no hole is outside of speech."""
    words = [a_word(start, start + seconds) for start, seconds in said]
    found = holes(speech, words)
    assert found == sorted(found)
    for start, end in found:
        assert length(within(speech, start, end)) >= LEAST_HOLE
    if not words:
        assert length(found) + len(speech) * LEAST_HOLE >= length(speech)
    else:
        reach = [(word.start - RATE, word.end + RATE) for word in words]
        for start, end in speech:
            free = not any(low < end and start < high for low, high in reach)
            if free and end - start >= LEAST_HOLE:
                assert any(low <= start and end <= high for low, high in found)

"""Words come to their own places, and pieces of text are parted where people part them."""

from hypothesis import given
from hypothesis import strategies as st

from stages.media.wave64 import RATE
from stages.recognisers.pieces import HeardWord, in_order, pieces, placed
from stages.recognisers.slicing import Packed

# Ten seconds of speech, a minute of silence, ten more; half a second of margin around each.
SPEECH = [(RATE, 11 * RATE), (71 * RATE, 81 * RATE)]
PACKED = Packed(((RATE // 2, 23 * RATE // 2), (141 * RATE // 2, 163 * RATE // 2)))


def a_word(start: float, end: float, text: str = " word") -> HeardWord:
    """A word by its seconds."""
    return HeardWord(start=round(start * RATE), end=round(end * RATE), text=text, probability=0.9)


def seconds(words: list[HeardWord]) -> list[tuple[float, float]]:
    """Where words are."""
    return [(word.start / RATE, word.end / RATE) for word in words]


def test_words_come_to_their_places_in_the_slice() -> None:
    """Each on its own side of the silence, and none in the silence around speech."""
    words = [a_word(0, 1), a_word(2, 3), a_word(11.5, 12.5), a_word(21, 22)]
    assert seconds(placed(words, PACKED, SPEECH)) == [(1, 1.5), (2.5, 3.5), (71, 72), (80.5, 81)]


def test_a_word_over_the_silence_belongs_to_the_side_that_has_more_of_it() -> None:
    """No word lasts a minute."""
    assert seconds(placed([a_word(10, 11.2), a_word(10.9, 12)], PACKED, SPEECH)) == [(10.5, 11), (71, 71.5)]


def test_a_word_far_from_all_speech_was_said_by_nobody() -> None:
    """What a model says in the silence of a margin is left out."""
    packed = Packed(((0, 20 * RATE),))
    assert placed([a_word(15, 16)], packed, [(RATE, 2 * RATE)]) == []
    assert seconds(placed([a_word(2.3, 2.6)], packed, [(RATE, 2 * RATE)])) == [(2.3, 2.6)]


def test_a_piece_ends_with_its_sentence_in_a_pause_or_before_it_grows_too_long() -> None:
    """And a comma is enough where it is long."""
    sentence = [a_word(0, 1, " One"), a_word(1, 2, " two."), a_word(2, 3, " Three"), a_word(5, 6, " four")]
    assert [piece.text for piece in pieces(sentence)] == ["One two.", "Three", "four"]
    endless = [a_word(n, n + 1, " on" if n != 11 else " on,") for n in range(40)]
    assert [len(piece.words) for piece in pieces(endless)] == [12, 15, 13]


def test_no_piece_ends_inside_a_word() -> None:
    """A model parts `3.14` and `don't`; what stands close together stays together."""
    words = [a_word(0, 1, " It's"), a_word(1, 2, " 3."), a_word(2, 3, "14")]
    assert [piece.text for piece in pieces(words)] == ["It's 3.14"]


WORDS = st.lists(
    st.builds(
        HeardWord,
        start=st.integers(-RATE, 40 * RATE),
        end=st.integers(-RATE, 40 * RATE),
        text=st.text(max_size=5),
        probability=st.just(0.5),
    ),
    max_size=30,
)


@given(WORDS)
def test_pieces_come_out_in_order_and_inside_whatever_the_model_says(words: list[HeardWord]) -> None:
    """They never overlap, end before they start, leave the slice, are empty, or hold a NUL."""
    ordered = in_order(placed(words, PACKED, SPEECH))
    edges = [edge for word in ordered for edge in (word.start, word.end)]
    assert edges == sorted(edges)
    assert all(PACKED.spans[0][0] <= edge <= PACKED.spans[-1][1] for edge in edges)
    out = list(pieces(ordered))
    assert all(piece.text.strip() == piece.text != "" and "\0" not in piece.text for piece in out)
    assert sum(len(piece.words) for piece in out) <= len(ordered)
    assert all(piece.start <= piece.end for piece in out)

"""Text is put at its own place, never over a long silence, and text nobody said is told from speech."""

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from stages.media.wave64 import RATE
from stages.recognisers.pieces import Heard, Hearing, tidy
from stages.recognisers.slicing import Packed, Span

# Ten seconds of speech, a minute of silence, ten more; half a second of margin around each.
SPEECH = [(RATE, 11 * RATE), (71 * RATE, 81 * RATE)]
PACKED = Packed(((RATE // 2, 23 * RATE // 2), (141 * RATE // 2, 163 * RATE // 2)))
SEAM = 11 * RATE
HEARING = Hearing(packed=PACKED, speech=SPEECH, parting_pause=3 * RATE, silent_reach=RATE)


def at(start: float, end: float, text: str, window: float = 0.0) -> Heard:
    """A piece by its packed seconds."""
    return Heard(window=round(window * RATE), start=round(start * RATE), end=round(end * RATE), text=text)


class Model:
    """Says what it was told to say, in order; keeps what it was asked."""

    def __init__(self, *answers: Sequence[Heard]) -> None:
        self.answers = list(answers)
        self.asked: list[Sequence[Span]] = []

    def __call__(self, parts: Sequence[Span]) -> Iterable[Heard]:
        """Recognise."""
        self.asked.append(parts)
        return self.answers.pop(0)


def heard(model: Model) -> list[tuple[float, float, str]]:
    """What comes out, in seconds of the slice."""
    said = (piece for piece in HEARING.pieces(model) if not piece.invented)
    return [(piece.start / RATE, piece.end / RATE, piece.text) for piece in tidy(said, PACKED)]


def test_all_speech_is_heard_at_once() -> None:
    """Each window of the model costs the same, however little is in it."""
    model = Model([at(0, 5, "one"), at(5, 10.8, "two"), at(11, 20, "three")])
    assert heard(model) == [(0.5, 5.5, "one"), (5.5, 11.3, "two"), (70.5, 79.5, "three")]
    assert model.asked == [[(0, PACKED.length)]]


def test_a_piece_that_reaches_a_little_over_a_silence_is_put_back() -> None:
    """On either side, without hearing it again."""
    model = Model([at(0, 11.9, "one"), at(10.2, 20, "two")])
    assert heard(model) == [(0.5, 11.5, "one"), (70.5, 79.5, "two")]


def test_text_joined_over_a_silence_is_heard_again_on_each_side() -> None:
    """The two sides come out with times of their own."""
    joined = at(8, 14, "before and after")
    model = Model([joined], [at(8, 10, "before", window=8), at(11.2, 14, "after", window=11)])
    assert heard(model) == [(8.5, 10.5, "before"), (70.7, 73.5, "after")]
    assert model.asked[1] == [(8 * RATE, SEAM), (SEAM, 14 * RATE)]


def test_text_that_cannot_be_heard_apart_is_kept() -> None:
    """Text at a vague time is better than none."""
    for again in ([], [at(8, 10, "loop " * 100, window=8)]):
        assert heard(Model([at(8, 14, "before and after")], again)) == [(8.5, 73.5, "before and after")]


def test_text_for_the_silence_that_is_left_at_an_end_is_invented() -> None:
    """The model listened to the margin after the last word and to nothing else."""
    pieces = list(HEARING.pieces(Model([at(0, 5, "one"), at(21.4, 22, "Thank you.", window=21.4)])))
    assert [piece.invented for piece in pieces] == [False, True]


def test_more_than_anybody_can_say_is_invented() -> None:
    """Six hundred letters in a second are a model that runs in a circle."""
    pieces = list(HEARING.pieces(Model([at(20, 21, "I'm sorry, " * 56, window=20)])))
    assert [piece.invented for piece in pieces] == [True]


@given(
    st.lists(
        st.builds(
            Heard,
            window=st.just(0),
            start=st.integers(-RATE, 40 * RATE),
            end=st.integers(-RATE, 40 * RATE),
            text=st.text(max_size=5),
        )
    )
)
def test_pieces_come_out_in_order_and_inside_whatever_the_model_says(pieces: list[Heard]) -> None:
    """They never overlap, end before they start, leave the slice, are empty, or hold a NUL."""
    out = list(tidy(pieces, PACKED))
    edges = [edge for piece in out for edge in (piece.start, piece.end)]
    assert edges == sorted(edges)
    assert all(PACKED.spans[0][0] <= edge <= PACKED.spans[-1][1] or edge == 0 for edge in edges)
    assert all(piece.text.strip() == piece.text != "" and "\0" not in piece.text for piece in out)
    assert len(out) == sum(bool(piece.text.replace("\0", "").strip()) for piece in pieces)

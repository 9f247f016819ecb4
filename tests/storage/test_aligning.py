"""The words of a corrected text have times, in order, and those that stay have their own."""

from hypothesis import given
from hypothesis import strategies as st

from storage.aligning import aligned
from storage.record import Word

WORDS = st.lists(st.sampled_from(["the", "milestone", "is", "reached", "рубеж", "—", "a"]), max_size=12)


def heard(words: list[str]) -> tuple[Word, ...]:
    """Return words as recognised, one a second from the tenth on."""
    return tuple(
        Word(start=10.0 + at, end=10.8 + at, text=f" {word}", probability=0.5)
        for at, word in enumerate(words)
    )


@given(WORDS, WORDS)
def test_the_words_make_up_the_text_and_never_go_back(before: list[str], after: list[str]) -> None:
    """Whatever was heard and whatever it is corrected to."""
    text = " ".join(after)
    made = aligned(heard(before), text, 10.0, 30.0)
    assert "".join(word.text for word in made) == text
    times = [moment for word in made for moment in (word.start, word.end)]
    assert times == sorted(times)
    assert all(10.0 <= moment <= 30.0 for moment in times)


def test_what_stays_keeps_its_time_and_what_came_instead_shares_it() -> None:
    """A misheard word corrected to two: they share its second, the others are where they were."""
    made = aligned(heard(["good", "mourning", "everybody"]), "Good morning to everybody", 10.0, 13.0)
    assert [(round(word.start, 2), round(word.end, 2)) for word in made] == [
        (10.0, 10.8),
        (11.0, 11.58),
        (11.58, 11.8),
        (12.0, 12.8),
    ]


def test_of_a_text_where_nothing_was_heard_the_words_share_the_whole_stretch() -> None:
    """As where the owner fills a gap."""
    made = aligned((), "one three", 4.0, 8.0)
    assert [word.text for word in made] == ["one", " three"]
    assert (made[0].start, made[-1].end) == (4.0, 8.0)


def test_a_text_taken_away_has_no_words() -> None:
    """An owner may leave nothing."""
    assert aligned(heard(["uh"]), "  ", 10.0, 11.0) == ()


def test_no_text_is_too_long_to_be_aligned_at_once() -> None:
    """What no recogniser says is not compared word by word."""
    made = aligned(heard(["a"] * 5000), "b " * 5000, 10.0, 20.0)
    assert len(made) == 5000

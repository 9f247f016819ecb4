"""What is let through of a word that is said over and over."""

from daemon.repeats import QUIET_SECONDS, Repeats


def test_a_word_is_let_through_once_in_its_time_and_none_goes_uncounted() -> None:
    """Ten a second for three minutes: three get through, and the later two have the number of the others."""
    repeats = Repeats()
    heard = [repeats.heard("full", now=tenth / 10) for tenth in range(3 * 600)]
    let_through = [(tenth / 10, count) for tenth, count in enumerate(heard) if count is not None]
    assert let_through == [(0, 0), (QUIET_SECONDS, 599), (2 * QUIET_SECONDS, 599)]


def test_other_words_are_not_kept_back() -> None:
    """However many there are, and no more of them are known than may be."""
    repeats = Repeats()
    assert all(repeats.heard(word, now=0) == 0 for word in range(1000))
    assert repeats.heard(999, now=1) is None
    assert repeats.heard(0, now=1) == 0

"""The options of a submission."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.intake.options import Options, read_options, storable
from storage.errors import SubmissionRefused


def test_nothing_given_is_all_defaults() -> None:
    """And an empty text is nothing given, as browsers send every field."""
    assert read_options([]) == Options()
    names = (
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
    assert read_options([(name, "") for name in names]) == Options()


def test_options_become_what_they_mean() -> None:
    """Topics may repeat; a language is told in any case, `auto` is none."""
    options = read_options(
        [("topics", "b"), ("topics", "a"), ("language", "pt-BR"), ("track", "0"), ("channels", "split")]
    )
    assert options == Options(topics=("b", "a"), asked_language="pt-br", track=0, channels="split")
    assert read_options([("language", "auto")]).asked_language is None


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        ([("colour", "red")], "'colour' is no option"),
        ([("title", "a"), ("title", "b")], "title is given 2 times"),
        ([("track", "1.5")], "track must be a whole number from 0 to 999"),
        ([("track", "-1")], "track must be"),
        ([("track", "²")], "track must be"),
        ([("track", "9" * 5000)], "track must be"),
        ([("channels", "MIX")], "channels must be one of mix, split, auto"),
        ([("language", "../en")], "language must be a code"),
        ([("language", "e" * 1000)], "language must be a code"),
        ([("title", "x" * 501)], "title has 501 letters, and 500 is the most"),
        ([("filename", "a\x00")], "filename holds a NUL character"),
        ([("filename", "a\udcff")], "filename is no valid Unicode text"),
        ([("topics", "x" * 101)], "a topic has 101 letters"),
        ([("topics", "x")] * 51, "there are 51 topics, and 50 is the most"),
        ([("\x00\n", "x")], r"'\x00\n' is no option"),
    ],
)
def test_each_fault_has_its_phrase(given: list[tuple[str, str]], phrase: str) -> None:
    """Under the code of the contract."""
    with pytest.raises(SubmissionRefused) as refused:
        read_options(given)
    assert refused.value.code == "invalid_options"
    assert phrase in str(refused.value)


_WORDS = st.sampled_from(["title", "filename", "topics", "track", "language", "channels", "hotwords", "x"])


@given(st.lists(st.tuples(_WORDS | st.text(), st.text(st.characters(exclude_categories=[])))))
def test_whatever_is_given_is_options_or_one_refusal(pairs: list[tuple[str, str]]) -> None:
    """No text of any kind makes another error, and what is accepted can be stored."""
    try:
        options = read_options(pairs)
    except SubmissionRefused as refused:
        str(refused).encode()
        return
    for text in (options.filename, options.title, options.description, options.hotwords, *options.topics):
        assert "\x00" not in text
        text.encode()


@given(st.text(st.characters(exclude_categories=[])))
def test_a_storable_name_is_no_fault(name: str) -> None:
    """A file's own name, whatever its bytes are, is taken once it is made storable."""
    shortened = storable(name)[:1024]
    assert read_options([("filename", shortened)]).filename == (shortened or "recording")

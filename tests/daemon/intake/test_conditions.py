"""Conditions as they come in headers, from whomever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.intake.conditions import (
    LONGEST_WAIT,
    NotSatisfiable,
    Part,
    accepts_stream,
    asked_edition,
    asked_part,
    asked_wait,
    event_after,
    none_match,
)

HEADERS = st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=60)
HOSTILE = st.one_of(HEADERS, st.from_regex(r"(W/)?\"[0-9a-f.]*\"(, ?(W/)?\"[^\"]*\")*", fullmatch=True))


@pytest.mark.parametrize(
    ("header", "lets_through"),
    [
        (None, True),
        ('"3.ab"', False),
        ('W/"3.ab"', False),
        ('"x", W/"y" ,"3.ab"', False),
        ("*", False),
        ('"3.abc"', True),
        ('"3.a"', True),
        ("3.ab", True),
        ("", True),
        ('"x" "3.ab"', True),
        ('"3.ab', True),
    ],
)
def test_a_tag_is_known_or_it_is_not(header: str | None, lets_through: bool) -> None:  # noqa: FBT001 - a table's column
    """Weak or strong, alone or in a list; what is no list of tags knows nothing."""
    assert none_match(header, '"3.ab"') is lets_through


@pytest.mark.parametrize(
    ("header", "edition"),
    [
        ('"3.ab"', 3),
        ('"3"', 3),
        ("*", None),
        ('W/"3.ab"', 0),
        ('"x", "7.c"', 7),
        ('"2147483647"', 2147483647),
        ('"2147483648"', 0),
        ('"99999999999999999999"', 0),
        ('"0"', 0),
        ('"-1"', 0),
        ("3", 0),
        ("", 0),
    ],
)
def test_an_edition_is_what_a_tag_begins_with(header: str, edition: int | None) -> None:
    """And nothing else: no weak tag, nothing out of the database's range."""
    assert asked_edition(header) == edition


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], 0),
        (["wait=30"], 30),
        (['wait="30"'], 30),
        (["respond-async, wait=5; x=y"], 5),
        (["respond-async", "WAIT = 7"], 7),
        (["wait=3", "wait=9"], 3),
        (["wait=600"], LONGEST_WAIT),
        (["wait=0"], 0),
        (["wait=-1"], 0),
        (["wait=1.5"], 0),
        (["wait=99999999999999999999"], 0),
        (["waiting=5"], 0),
    ],
)
def test_a_wait_is_what_was_asked_for_and_no_longer_than_it_may(headers: list[str], seconds: int) -> None:
    """What cannot be understood is passed over."""
    assert asked_wait(headers) == seconds


@pytest.mark.parametrize(
    ("header", "part"),
    [
        (None, None),
        ("bytes=0-1", Part(0, 2)),
        ("bytes=0-0", Part(0, 1)),
        ("bytes=10-", Part(10, 90)),
        ("bytes=-30", Part(70, 30)),
        ("bytes=-500", Part(0, 100)),
        ("bytes=99-9999999999999999999", Part(99, 1)),
        ("bytes=0-1,5-6", None),
        ("bytes=5-1", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
        ("lines=0-1", None),
        ("bytes=100-", NotSatisfiable),
        ("bytes=-0", NotSatisfiable),
    ],
)
def test_a_part_is_what_players_ask_for(header: str | None, part: Part | type[Exception] | None) -> None:
    """Of a file of a hundred bytes; what is no single range is answered with the whole."""
    if isinstance(part, type):
        with pytest.raises(part):
            asked_part(header, 100)
    else:
        assert asked_part(header, 100) == part


@given(HOSTILE, st.integers(1, 2**40))
def test_no_header_is_more_than_it_can_be(header: str, size: int) -> None:
    """Whatever comes, the answers stay within their bounds, and nothing is raised but what is declared."""
    assert none_match(header, '"1.a"') in (True, False)
    assert asked_edition(header) in range(2**31) or asked_edition(header) is None
    assert 0 <= asked_wait([header]) <= LONGEST_WAIT
    assert 0 <= event_after(header) < 10**18
    assert accepts_stream(header) in (True, False)
    try:
        part = asked_part(f"bytes={header}", size)
    except NotSatisfiable:
        return
    if part is not None:
        assert 0 <= part.first < part.first + part.length <= size


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 100))
def test_a_satisfiable_range_is_what_the_rfc_says(first: int, last: int, size: int) -> None:
    """From the first byte to the last one that there is, both counted in."""
    header = f"bytes={first}-{last}"
    if last < first:
        assert asked_part(header, size) is None
    elif first >= size:
        with pytest.raises(NotSatisfiable):
            asked_part(header, size)
    else:
        assert asked_part(header, size) == Part(first, min(last, size - 1) - first + 1)


def test_streams_are_asked_for_by_name() -> None:
    """Whoever accepts anything gets JSON."""
    assert accepts_stream("text/event-stream")
    assert accepts_stream("application/json, Text/Event-Stream;q=0.5")
    assert not accepts_stream("*/*")
    assert not accepts_stream("")

"""Queries are read as they are declared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.intake.problems import Problem
from daemon.intake.queries import Parameter, read_query

DECLARED = (
    Parameter(name="kind", says="", schema={"type": "string", "enum": ["a", "b"]}),
    Parameter(name="flag", says="", schema={"type": "boolean"}),
    Parameter(name="count", says="", schema={"type": "integer", "minimum": 1, "maximum": 200}),
    Parameter(name="words", says="", schema={"type": "string", "maxLength": 5}),
    Parameter(name="Prefer", says="", schema={"type": "string"}, place="header"),
)


def test_each_value_is_of_its_kind() -> None:
    """And what is not given is not there."""
    given = [("kind", "b"), ("flag", "false"), ("count", "200"), ("words", "")]
    assert read_query(given, DECLARED) == {"kind": "b", "flag": False, "count": 200, "words": ""}
    assert read_query([], DECLARED) == {}


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        (("kind", "c"), "kind must be one of a, b"),
        (("flag", "yes"), "flag must be true or false"),
        (("count", "0"), "count must be a whole number from 1 to 200"),
        (("count", "9" * 5000), "count must be a whole number"),
        (("count", "١"), "count must be a whole number"),
        (("words", "too long"), "words has 8 letters, and 5 is the most"),
        (("words", "\x00"), "words holds a NUL character"),
        (("Prefer", "wait=1"), "is no parameter of this request"),
        (("k" * 10_000, ""), "is no parameter of this request"),
    ],
)
def test_a_fault_is_told_by_name(given: tuple[str, str], phrase: str) -> None:
    """In one sentence with all the others, and never at length."""
    with pytest.raises(Problem) as told:
        read_query([("flag", "maybe"), ("flag", "true"), given], DECLARED)
    assert phrase in told.value.detail
    assert "flag must be true or false" in told.value.detail
    assert "flag is given more than once" in told.value.detail
    assert len(told.value.detail) < 1000


@given(st.lists(st.tuples(st.sampled_from(["kind", "flag", "count", "words", "x"]), st.text()), max_size=5))
def test_whatever_is_given_is_read_or_told(given: list[tuple[str, str]]) -> None:
    """Nothing else is raised."""
    try:
        read = read_query(given, DECLARED)
    except Problem:
        return
    assert set(read) == {name for name, _ in given} <= {"kind", "flag", "count", "words"}


def test_a_declaration_that_nobody_reads_is_a_fault_of_ours() -> None:
    """And shows at the first request."""
    odd = Parameter(name="odd", says="", schema={"type": "object"})
    with pytest.raises(TypeError, match="a form that nobody reads"):
        read_query([("odd", "")], [odd])

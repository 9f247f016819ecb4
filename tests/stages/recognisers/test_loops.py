"""A model that runs in a circle is told from people who repeat themselves."""

import pytest

from stages.recognisers.loops import runs_in_a_circle


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, " * 8,
        "You " * 12,
        "-0" * 40,
        "спасибо за просмотр " * 6,
        "and then we went to the house and " * 5,
    ],
)
def test_the_same_again_and_again_is_a_loop(text: str) -> None:
    """A word ten times, a phrase five times, or letters without end."""
    assert runs_in_a_circle(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No, no, no, no!",
        "It was the best of times. It was the worst of times. It was the age of wisdom. It was an age.",
        "Row, row, row your boat, gently down the stream. Merrily, merrily, merrily, merrily, a dream.",
        "Тише, тише, тише, едет мышка на крыше.",
    ],
)
def test_people_repeat_themselves(text: str) -> None:
    """In songs, in rhetoric, and when they mean it."""
    assert not runs_in_a_circle(text.split())

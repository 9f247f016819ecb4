"""The catalogues: every language says all of it, no page says anything else, numbers agree."""

import re
import string
from pathlib import Path

import pytest

import daemon.panel
from daemon.panel.words import LANGUAGES, Words, chosen_language, script_words
from daemon.panel.words.choosing import preferred
from daemon.panel.words.numbers import clock, iso_length, plural_form, stretch
from storage.record import StopCode

ROOM = Path(daemon.panel.__file__).parent
TEMPLATES = sorted((ROOM / "templates").iterdir())
FORMS = {"en": 2, "ru": 3}
# What stands between the tags of a template, and in the attributes that a person reads or hears.
_NO_WORDS = re.compile(
    r"\{% block main_attributes %\}.*?\{% endblock %\}|<!doctype html>|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}"
    r"|<code>[^<{]*</code>",
    re.DOTALL,
)
_READ = re.compile(r'\b(?:aria-label|placeholder|title|alt)="([^"]*)"')
_TAG = re.compile(r"<[^>]*>")


def facts(text: str) -> set[str]:
    """Return the facts that a text has places for."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_language_says_the_same_things() -> None:
    """The same names, each with the same facts in every form, in as many forms as the language has."""
    for language, words in LANGUAGES.items():
        assert words.keys() == LANGUAGES["en"].keys(), language
        for name, text in words.items():
            english = LANGUAGES["en"][name].split("|")
            forms = text.split("|")
            assert len(forms) == (FORMS[language] if len(english) > 1 else 1), (language, name)
            assert all(facts(form) == facts(english[-1]) for form in forms), (language, name)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_says_anything_by_itself(template: Path) -> None:
    """Every word of a page comes out of the catalogue, also what is only heard or pointed at."""
    text = _NO_WORDS.sub("", template.read_text("utf-8"))
    said = [*_READ.findall(text), _TAG.sub(" ", text)]
    assert not [each for each in said if re.search(r"[^\W\d_]", each)]


def test_every_name_is_there_that_a_template_or_a_script_asks_for() -> None:
    """A page that asks for words there are not is an error; no page of ours is."""
    for file in TEMPLATES:
        for name in re.findall(r"\b(?:say|count)\(\"([a-z_.]+)\"[,)]", file.read_text("utf-8")):
            assert name in LANGUAGES["en"], (file.name, name)
    for file in (ROOM / "static").glob("*.js"):
        for name in re.findall(r"\bsay\(\"([a-z_.]+)\"[,)]", file.read_text("utf-8")):
            assert f"js.{name}" in LANGUAGES["en"], (file.name, name)


def test_every_stop_is_told_in_every_language() -> None:
    """In two sentences: cause and remedy."""
    for language in LANGUAGES:
        words = Words(language)
        assert all(words.say(f"stop.{code}").count(".") >= 2 for code in StopCode)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        *((number, "минута") for number in (1, 21, 101)),
        *((number, "минуты") for number in (2, 4, 22, 104)),
        *((number, "минут") for number in (0, 5, 11, 12, 14, 25, 111, 112)),
    ],
)
def test_russian_numbers_take_their_forms(number: int, said: str) -> None:
    """One, few, many; the teens are many."""
    assert Words("ru").count("stretch.minutes", number) == f"{number} {said}"


def test_english_numbers_take_theirs() -> None:
    """One, and all the others."""
    assert [Words("en").count("stretch.hours", number) for number in (0, 1, 2)] == [
        "0 hours",
        "1 hour",
        "2 hours",
    ]
    assert plural_form("en", 1, 1) == plural_form("ru", 2, 1) == 0


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("ru", "ru"),
        ("ru-RU,ru;q=0.9,en;q=0.8", "ru"),
        ("de-DE,de;q=0.9,ru;q=0.5,en;q=0.3", "ru"),
        ("en;q=0.1,ru;q=0", "en"),
        ("*", "en"),
        ("ru;q=x,,;;q=1", "en"),
        ("ru" * 10_000, "en"),
    ],
)
def test_the_browser_s_language_is_spoken(accepted: str, language: str) -> None:
    """The one it asks for most among ours; what makes no sense asks for nothing."""
    assert preferred(accepted, ("en", "ru")) == language


def test_a_choice_goes_before_the_browser() -> None:
    """As long as it is one that there is."""
    assert chosen_language("en", "ru") == "en"
    assert chosen_language("xx", "ru") == "ru"
    assert chosen_language(None, "ru") == "ru"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00"), (7.9, "0:07"), (2535, "42:15"), (14_400, "4:00:00"), (-1, "0:00")]
)
def test_lengths_are_shown_as_players_do(seconds: float, shown: str) -> None:
    """Minutes and seconds, and hours where there are any."""
    assert clock(seconds) == shown
    assert iso_length(seconds) == f"PT{max(int(seconds), 0)}S"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.2, ("seconds", 1)),
        (59.5, ("seconds", 60)),
        (61, ("minutes", 2)),
        (5399, ("minutes", 90)),
        (5400, ("hours", 2)),
        (170_000, ("hours", 48)),
        (172_801, ("days", 3)),
    ],
)
def test_a_stretch_is_told_in_the_unit_that_suits_it(seconds: float, told: tuple[str, int]) -> None:
    """Rounded up: nobody minds what comes sooner."""
    assert stretch(seconds) == told


def test_scripts_have_their_words_and_those_of_errors() -> None:
    """And none of the pages' others."""
    words = script_words("ru")
    assert words["record"] == "Записать"
    assert words["error.too_large"].startswith("Это больше")
    assert "records.title" not in words

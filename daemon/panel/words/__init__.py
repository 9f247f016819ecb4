"""The panel's words: a catalogue for each language, and what of it a person reads."""

from collections.abc import Mapping

from daemon.panel.words.choosing import preferred
from daemon.panel.words.en import WORDS as ENGLISH
from daemon.panel.words.numbers import plural_form
from daemon.panel.words.ru import WORDS as RUSSIAN

__all__ = ["LANGUAGES", "Words", "chosen_language", "script_words"]

LANGUAGES: Mapping[str, Mapping[str, str]] = {"en": ENGLISH, "ru": RUSSIAN}
_FOR_SCRIPTS = "js."


class Words:
    """One language's words: `say("name")` has them, facts put in; a name that is not there is an error."""

    def __init__(self, language: str) -> None:
        """Speak this language."""
        self.language = language
        self._words = LANGUAGES[language]

    def say(self, name: str, /, **facts: object) -> str:
        """Return the words of a name, with facts put into their places."""
        return self._words[name].format(**facts)

    def of(self, language: str) -> "Words":
        """Return the words of another language."""
        return Words(language)

    def count(self, name: str, number: int, /, **facts: object) -> str:
        """Return the words that fit a number: their forms stand in one text, with `|` between them."""
        forms = self._words[name].split("|")
        return forms[plural_form(self.language, number, len(forms))].format(number=number, **facts)

    def knows(self, name: str) -> bool:
        """Tell whether there are words of that name."""
        return name in self._words


def script_words(language: str) -> Mapping[str, str]:
    """Return what the scripts say; of errors they speak in the same words as the pages."""
    words = LANGUAGES[language].items()
    own = {name.removeprefix(_FOR_SCRIPTS): text for name, text in words if name.startswith(_FOR_SCRIPTS)}
    return own | {name: text for name, text in words if name.startswith("error.")}


def chosen_language(kept: str | None, accepted: str) -> str:
    """Return the language that a person chose, else the one their browser asks for."""
    return kept if kept is not None and kept in LANGUAGES else preferred(accepted, tuple(LANGUAGES))

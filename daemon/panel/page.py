"""What a page is, declared once, and what is known of a visit: who, in which language, with what form."""

from collections.abc import Awaitable, Callable
from enum import Enum, auto
from http import HTTPStatus
from typing import Any

from attrs import define, field, frozen
from starlette.requests import Request
from starlette.responses import Response

from daemon.intake.browsers import PROOF, Browsers, proof_of
from daemon.intake.doors import Doors, doors_of
from daemon.panel.forms import Form
from daemon.panel.rendering import fragment, page
from daemon.panel.tries import Tries
from daemon.panel.words import Words, chosen_language
from storage.account import Account

LANGUAGE_COOKIE, THEME_COOKIE = "rubezh_language", "rubezh_theme"
THEMES = ("auto", "light", "dark")


class For(Enum):
    """Who may visit."""

    ANYBODY = auto()
    ACCOUNT = auto()  # whoever is signed in
    SERVICE_OWNER = auto()  # of those, whose account runs the service; to others there is no such page


@define(eq=False)
class Visit:
    """A request from a browser: who, in which words, and with what form."""

    request: Request
    signed_in: Account | None = None
    form: Form = field(factory=lambda: Form({}))

    @property
    def doors(self) -> Doors:
        """The doors behind the panel."""
        return doors_of(self.request)

    @property
    def browsers(self) -> Browsers:
        """What knows who is signed in."""
        browsers = self.doors.browsers
        assert browsers is not None  # noqa: S101 - the panel is attached with it
        return browsers

    @property
    def tries(self) -> Tries:
        """How often passwords were tried."""
        tries = self.request.app.state.tries
        assert isinstance(tries, Tries)  # noqa: S101 - Starlette's state takes anything
        return tries

    @property
    def address(self) -> str | None:
        """Where the request came from; None on the service's own socket."""
        return None if self.request.client is None else self.request.client.host

    @property
    def account(self) -> Account:
        """Who is signed in, on a page for those who are."""
        assert self.signed_in is not None  # noqa: S101 - such a page is shown to nobody else
        return self.signed_in

    @property
    def words(self) -> Words:
        """The words of the visitor's language."""
        kept = self.request.cookies.get(LANGUAGE_COOKIE)
        return Words(chosen_language(kept, self.request.headers.get("accept-language", "")))

    @property
    def theme(self) -> str:
        """How the visitor wants pages to look."""
        kept = self.request.cookies.get(THEME_COOKIE, "")
        return kept if kept in THEMES else THEMES[0]

    @property
    def proof(self) -> str:
        """What a form of this page sends along."""
        secret = self.browsers.secret(self.request)
        return "" if secret is None or self.signed_in is None else proof_of(secret)

    @property
    def here(self) -> str:
        """The path of this page, with its query."""
        url = self.request.url
        return f"{url.path}?{url.query}" if url.query else url.path

    def facts(self, **facts: object) -> dict[str, Any]:
        """Return what every template knows, and `facts`."""
        words = self.words
        known = {
            "say": words.say,
            "count": words.count,
            "words": words,
            "theme": self.theme,
            "themes": THEMES,
            "account": self.signed_in,
            "proof": self.proof,
            "proof_name": PROOF,
            "here": self.here if self.request.method == "GET" else "/records",
            "path": self.request.url.path,
        }
        return {**known, **facts}

    def page(self, template: str, status: int = HTTPStatus.OK, **facts: object) -> Response:
        """Return a page of a template."""
        return page(template, self.facts(**facts), status)

    def fragment(self, template: str, **facts: object) -> str:
        """Return a part of a page."""
        return fragment(template, self.facts(**facts))


@frozen(kw_only=True)
class Page:
    """One method on one path. A form is read and known to be ours before the handler is asked.

    `reads_itself`: the handler reads the body; then the browser's own word must do that it comes from us.
    """

    method: str
    path: str
    handler: Callable[[Visit], Awaitable[Response]]
    who: For = For.ACCOUNT
    reads_itself: bool = False

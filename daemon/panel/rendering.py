"""Templates into pages. All that is put into one is escaped; a name that is not there is an error."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from daemon.panel.static_files import static_path
from daemon.panel.words import LANGUAGES
from daemon.panel.words.numbers import clock, day_and_time, iso, iso_length


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("daemon.panel"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals.update(static=static_path, languages=tuple(LANGUAGES), query=query_of)
    environment.filters.update(clock=clock, iso=iso, iso_length=iso_length, day_and_time=day_and_time)
    return environment


def query_of(**facts: str | None) -> str:
    """Return an address's query of these facts, without those that are empty."""
    said = {name: text for name, text in facts.items() if text}
    return f"?{urlencode(said)}" if said else ""


def fragment(template: str, facts: Mapping[str, Any]) -> str:
    """Return a template's text, for a part of a page."""
    return _environment().get_template(template).render(facts)


def page(template: str, facts: Mapping[str, Any], status: int = HTTPStatus.OK) -> HTMLResponse:
    """Return a page."""
    return HTMLResponse(fragment(template, facts), status)

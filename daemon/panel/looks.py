"""Which language and which theme: chosen by a press, and remembered by the browser."""

from starlette.responses import Response

from daemon.panel.page import LANGUAGE_COOKIE, THEME_COOKIE, THEMES, For, Page, Visit
from daemon.panel.visiting import go_to, ours
from daemon.panel.words import LANGUAGES

_YEAR = 31_536_000


async def choose_look(visit: Visit) -> Response:
    """Remember what was chosen, and show the same page so."""
    response = go_to(ours(visit.form.one("back")))
    for cookie, name, known in ((LANGUAGE_COOKIE, "language", LANGUAGES), (THEME_COOKIE, "theme", THEMES)):
        if (chosen := visit.form.one(name)) in known:
            private = visit.browsers.is_private(visit.request)
            response.set_cookie(cookie, chosen, max_age=_YEAR, secure=private, httponly=True, samesite="lax")
    return response


PAGES = (Page(method="POST", path="/look", handler=choose_look, who=For.ANYBODY),)

"""The panel put together, and attached to the doors."""

from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.intake.browsers import Browsers
from daemon.intake.doors import Doors
from daemon.intake.problems import tell_http
from daemon.panel import account, correcting, deeds, live, looks, one, records, service, signing_in
from daemon.panel.headers import guarded
from daemon.panel.page import Page, Visit
from daemon.panel.static_files import send_static
from daemon.panel.tries import Tries
from daemon.panel.visiting import error_page, routes_of
from daemon.settings import PanelSettings
from storage.sessions import Lasting

_DAY = 86_400.0
_FOR_PROGRAMS = ("/v1/", "/openapi.json", "/metrics", "/healthz", "/readyz")

PAGES: tuple[Page, ...] = (
    *signing_in.PAGES,
    *looks.PAGES,
    *records.PAGES,
    *live.PAGES,
    *one.PAGES,
    *correcting.PAGES,
    *deeds.PAGES,
    *account.PAGES,
    *service.PAGES,
)


def attach(app: Starlette, settings: PanelSettings) -> None:
    """Have the doors of an application serve the panel too, and take its sessions for tokens."""
    doors: Doors = app.state.doors
    lasting = Lasting(idle_seconds=settings.idle_days * _DAY, longest_seconds=settings.longest_days * _DAY)
    doors.browsers = Browsers(database=doors.database, address=settings.address, lasting=lasting)
    app.state.tries = Tries()
    app.router.routes.extend(routes_of(PAGES))
    app.router.routes.append(Route("/static/{hash}/{name}", send_static, methods=["GET"]))
    app.exception_handlers[HTTPException] = _tell_person


async def _tell_person(request: Request, error: Exception) -> Response:
    """Answer for a path that there is not: with a page where a browser asks, else as the doors do."""
    wants_page = "text/html" in request.headers.get("accept", "")
    if not wants_page or request.url.path.startswith(_FOR_PROGRAMS):
        return await tell_http(request, error)
    assert isinstance(error, HTTPException)  # noqa: S101 - Starlette calls by the error's class
    code = "not_found" if error.status_code == HTTPStatus.NOT_FOUND else "method"
    return guarded(error_page(Visit(request), error.status_code, code, error.detail, error.headers))

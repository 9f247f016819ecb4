"""How a visit goes: who it is, whether a page of ours had it sent, the page, or what is in its way."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from urllib.parse import quote, urlencode

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon.intake.browsers import PROOF, forged, is_proof
from daemon.intake.problems import Problem, no_such_record
from daemon.panel.forms import read_form
from daemon.panel.headers import guarded
from daemon.panel.page import For, Page, Visit
from storage.errors import DatabaseUnavailable, NoSpace, SubmissionRefused

SIGN_IN = "/sign-in"
_RETRY_DATABASE = "5"

log = structlog.get_logger()


def routes_of(pages: Iterable[Page]) -> list[Route]:
    """Return the routes of these pages: one for each path."""
    by_path: dict[str, dict[str, Page]] = {}
    for each in pages:
        by_path.setdefault(each.path, {})[each.method] = each
    return [Route(path, _endpoint(methods), methods=list(methods)) for path, methods in by_path.items()]


def _endpoint(methods: Mapping[str, Page]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        page = methods.get(request.method) or methods["GET"]  # HEAD is GET without a body
        return guarded(await answer(Visit(request), lambda visit: _visited(visit, page)))

    return endpoint


async def answer(visit: Visit, shown: Callable[[Visit], Awaitable[Response]]) -> Response:
    """Return the page, or what is in its way as a page."""
    try:
        return await shown(visit)
    except Problem as problem:
        if problem.status == HTTPStatus.UNAUTHORIZED:
            return to_sign_in(visit)
        return error_page(visit, int(problem.status.value), problem.code, problem.detail, problem.headers)
    except ClientDisconnect:
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # who would read it has gone
    except (SubmissionRefused, DatabaseUnavailable, NoSpace) as error:
        return _refusal(visit, error)
    except Exception:  # kept inside its visit, as the doors keep it inside its request
        log.warning("request.failed", method=visit.request.method, path=visit.request.url.path, exc_info=True)
        return error_page(visit, HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", "")


def _refusal(visit: Visit, error: SubmissionRefused | DatabaseUnavailable | NoSpace) -> Response:
    match error:
        case SubmissionRefused():
            return error_page(visit, HTTPStatus.UNPROCESSABLE_ENTITY, error.code, f"{error}.")
        case DatabaseUnavailable():
            headers = {"Retry-After": _RETRY_DATABASE}
            return error_page(visit, HTTPStatus.SERVICE_UNAVAILABLE, "database_unavailable", "", headers)
        case NoSpace():
            log.warning("store.full", cause=str(error))
            return error_page(visit, HTTPStatus.INSUFFICIENT_STORAGE, "no_space", "")


def error_page(
    visit: Visit, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a page that says what is in the way, in the visitor's words where there are any."""
    words = visit.words
    said = words.say(f"error.{code}") if words.knows(f"error.{code}") else detail
    response = visit.page("error.html", status, code=code, said=said)
    response.headers.update(headers or {})
    return response


def to_sign_in(visit: Visit) -> Response:
    """Lead to the sign-in, and from there back to where one wanted to go."""
    back = visit.here if visit.request.method in ("GET", "HEAD") else "/records"
    asked = {"next": back} if back not in ("/", "/records") else {}
    if visit.request.method == "POST":
        asked["said"] = "again"
    return go_to(f"{SIGN_IN}?{urlencode(asked)}" if asked else SIGN_IN)


def go_to(path: str) -> Response:
    """Lead to another page of ours, so that a reload repeats nothing."""
    return RedirectResponse(quote(path, safe="/?&=%:#+,;@~._-"), HTTPStatus.SEE_OTHER)


def ours(path: str, otherwise: str = "/records") -> str:
    """Return a path that somebody gave us, if it leads to a page of ours and nowhere else."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_ours else otherwise


async def _visited(visit: Visit, page: Page) -> Response:
    request = visit.request
    secret = visit.browsers.secret(request)
    visit.signed_in = await visit.browsers.account(request)
    if page.who is not For.ANYBODY and visit.signed_in is None:
        return to_sign_in(visit)
    if page.who is For.SERVICE_OWNER and not visit.account.is_service_owner:
        raise no_such_record()
    if request.method == "POST":
        if not visit.browsers.is_from_us(request):
            raise forged()
        if not page.reads_itself:
            visit.form = await read_form(request)
            if visit.signed_in is not None and not is_proof(visit.form.one(PROOF), secret or ""):
                raise forged()
    return await page.handler(visit)

"""Errors as the doors tell them: RFC 9457 problems with a stable `code`, and nothing of our insides."""

from http import HTTPStatus

import structlog
from attrs import frozen
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from daemon.intake.compatible.errors import openai_error, speaks_openai
from storage.account import Account
from storage.errors import DatabaseUnavailable, DataRefused, NoSpace, SubmissionRefused

_RETRY_DATABASE = 5
_RETRY_STOPPING = 10

log = structlog.get_logger()


@frozen
class OtherStatus:
    """A status that a protocol on top of HTTP has added."""

    value: int
    phrase: str


class Problem(Exception):
    """An answer that is an error; `detail` is one sentence for a person."""

    def __init__(
        self,
        status: HTTPStatus | OtherStatus,
        code: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Keep what the answer will say."""
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers or {}


class ProblemResponse(JSONResponse):
    """A problem on its way out."""

    media_type = "application/problem+json"

    def __init__(self, problem: Problem, **more: object) -> None:
        """Say the problem in the RFC's members and our `code`, and what more there is to it."""
        content = {
            "type": "about:blank",
            "title": problem.status.phrase,
            "status": problem.status.value,
            "detail": problem.detail,
            "code": problem.code,
            **more,
        }
        super().__init__(content, problem.status.value, problem.headers)
        self._problem = problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, in the form that the sender's client reads."""
        if not speaks_openai(scope["path"]):
            await super().__call__(scope, receive, send)
            return
        problem = self._problem
        error = openai_error(problem.status.value, problem.code, problem.detail)
        await JSONResponse(error, problem.status.value, problem.headers)(scope, receive, send)


def come_again(status: HTTPStatus, code: str, detail: str, seconds: int) -> Problem:
    """Say that the same request may be answered otherwise in so many seconds."""
    return Problem(status, code, detail, headers={"Retry-After": str(seconds)})


def stopping(detail: str) -> Problem:
    """Say that the service takes nothing more, and that the next run will."""
    return come_again(HTTPStatus.SERVICE_UNAVAILABLE, "stopping", detail, _RETRY_STOPPING)


def refused(error: DataRefused, account: Account) -> Problem:
    """Say that the database did not take the record; mostly its account was removed meanwhile."""
    log.warning("submission.refused", owner=str(account.id), account=account.name, cause=str(error))
    detail = "The recording could not be accepted for this account; see whether the account still exists."
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "refused", detail)


def no_such_record() -> Problem:
    """Say the same of an unknown record, a deleted one and somebody else's."""
    return Problem(HTTPStatus.NOT_FOUND, "not_found", "There is no such record, or it is not yours.")


class ContainedErrors:
    """Keeps an error of ours inside its request: logged once, told as a 500, and the service goes on.

    A request holds nothing that others rely on: what it wrote is either committed or rolled back, and its
    file is durable or removed. So one sender's bad luck need not end everybody's work.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, and answer for it when it cannot."""
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception:
            log.warning("request.failed", method=scope.get("method"), path=scope.get("path"), exc_info=True)
            if scope["type"] == "http" and not started:
                detail = "Something went wrong on our side; the service owner's log has the cause."
                problem = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", detail)
                await ProblemResponse(problem)(scope, receive, send)


async def _tell_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101 - Starlette calls by the error's class, its types do not say so
    return ProblemResponse(error)


async def tell_http(_: Request, error: Exception) -> Response:
    """Answer for a path or a method that there is not."""
    assert isinstance(error, HTTPException)  # noqa: S101 - the same
    status = HTTPStatus(error.status_code)
    code = status.phrase.lower().replace(" ", "_")
    detail = f"{status.description or status.phrase}."
    return ProblemResponse(Problem(status, code, detail, headers=dict(error.headers or {})))


async def _tell_refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, SubmissionRefused)  # noqa: S101 - the same
    return ProblemResponse(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, error.code, f"{error}."))


async def _tell_unavailable(_: Request, __: Exception) -> Response:
    return ProblemResponse(
        Problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "database_unavailable",
            "The service cannot reach its database just now; try again in a moment.",
            headers={"Retry-After": str(_RETRY_DATABASE)},
        )
    )


async def _tell_full(_: Request, error: Exception) -> Response:
    log.warning("store.full", cause=str(error))
    detail = "The service has no space left for this recording; tell the service owner and try again later."
    return ProblemResponse(Problem(HTTPStatus.INSUFFICIENT_STORAGE, "no_space", detail))


async def _tell_nobody(_: Request, __: Exception) -> Response:
    return Response(status_code=HTTPStatus.BAD_REQUEST)  # who would read it has gone


TOLD: dict[type[Exception], ExceptionHandler] = {
    Problem: _tell_problem,
    HTTPException: tell_http,
    SubmissionRefused: _tell_refused,
    DatabaseUnavailable: _tell_unavailable,
    NoSpace: _tell_full,
    ClientDisconnect: _tell_nobody,
}

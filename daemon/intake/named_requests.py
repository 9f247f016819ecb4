"""What every request passes first: it gets a name, and two lengths at once are one too many."""

import secrets
from http import HTTPStatus

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.intake.problems import Problem, ProblemResponse

_NAME_BYTES = 8


class NamedRequests:
    """Gives each request a name, which stands in its answer and in every line of the log about it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application under the request's name."""
        name = secrets.token_hex(_NAME_BYTES)

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"request-id", name.encode())]
                message = {**message, "headers": headers}
            await send(message)

        with structlog.contextvars.bound_contextvars(request=name):
            if _has_two_lengths(scope):
                await ProblemResponse(_two_lengths())(scope, receive, telling)
            else:
                await self._app(scope, receive, telling)


def _has_two_lengths(scope: Scope) -> bool:
    """Tell whether a proxy before us may have seen another end of this request than we would."""
    names = [name.lower() for name, _ in scope.get("headers", ())]
    return b"transfer-encoding" in names and b"content-length" in names


def _two_lengths() -> Problem:
    detail = "The request says both Content-Length and Transfer-Encoding; send it with one of them."
    return Problem(HTTPStatus.BAD_REQUEST, "ambiguous_length", detail)

"""What a route is: declared once, and the router and the description of the API both come of that."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Any
from uuid import UUID

from attrs import field, frozen
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.intake.doors import Doors, asked_record, doors_of, entered
from daemon.intake.queries import Parameter, read_query
from storage.account import Account
from storage.entries import Look
from storage.readiness import Readiness

Endpoint = Callable[[Request], Awaitable[Response]]


class Who(Enum):
    """Who may ask."""

    ANYBODY = auto()
    ACCOUNT = auto()  # whoever brings the token of an account
    OWNER = auto()  # the service owner: on the service's own socket, or by an account of that role


@frozen(kw_only=True)
class Asked:
    """A request whose sender is known and whose query is read."""

    request: Request
    doors: Doors
    account: Account
    query: Mapping[str, Any]
    readiness: Readiness | None = None  # what was looked at ahead, whoever's it is

    @property
    def record_id(self) -> UUID:
        """The record in the path; raises Problem for what cannot be an id of ours."""
        return asked_record(self.request)


@frozen(kw_only=True)
class Content:
    """One form of a body: `shape` is a class of ours, or a schema, for what `media` says."""

    media: str
    shape: Any


@frozen(kw_only=True)
class Answer:
    """An answer that is no problem."""

    says: str
    contents: tuple[Content, ...] = ()
    headers: Mapping[str, str] = {}  # what each of them says


@frozen(kw_only=True)
class Operation:
    """One method on one path.

    An operation of an account is handed what was asked, token and query already checked; what it will look
    at in any case it may name `ahead`, to have it read with the token. One that does all that by itself is
    `raw`: its parameters are described here and read there.
    """

    method: str
    path: str
    name: str
    says: str
    answers: Mapping[int, Answer]
    handler: Callable[[Asked], Awaitable[Response]] | None = None
    ahead: Callable[[Request], Look | None] = lambda _: None
    raw: Endpoint | None = None
    who: Who = Who.ACCOUNT
    parameters: tuple[Parameter, ...] = ()
    body: tuple[Content, ...] = ()
    body_required: bool = True
    problems: tuple[tuple[int, str], ...] = ()
    tag: str = "records"
    tells: str = field(default="problem")  # or "openai": whose form its errors have


def routes_of(operations: Iterable[Operation]) -> list[Route]:
    """Return the routes of these operations: one for each path, so that a 405 can tell every method of it."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for each in operations:
        by_path.setdefault(each.path, {})[each.method] = each.raw or _endpoint(each)
    return [Route(path, _chosen(methods), methods=list(methods)) for path, methods in by_path.items()]


def json_answer(says: str, shape: Any, headers: Mapping[str, str] | None = None) -> Answer:  # noqa: ANN401 - a class or a schema
    """Return the declaration of an answer in JSON."""
    return Answer(
        says=says, contents=(Content(media="application/json", shape=shape),), headers=headers or {}
    )


def _chosen(methods: Mapping[str, Endpoint]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await (methods.get(request.method) or methods["GET"])(request)  # HEAD is GET without a body

    return endpoint


def _endpoint(operation: Operation) -> Endpoint:
    handler = operation.handler
    if handler is None:
        raise TypeError(f"{operation.name} has nobody to answer it")

    async def endpoint(request: Request) -> Response:
        # First who asks: to everybody else a right question and a wrong one are the same.
        found = await entered(request, operation.ahead(request))
        query = read_query(request.query_params.multi_items(), operation.parameters)
        asked = Asked(
            request=request,
            doors=doors_of(request),
            account=found.account,
            query=query,
            readiness=found.readiness,
        )
        return await handler(asked)

    return endpoint

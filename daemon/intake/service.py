"""What the service owner asks behind the doors: is it ready, its numbers, why a record does not move."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any, Literal

from attrs import frozen
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from daemon.explain import explain
from daemon.explained import as_plain
from daemon.intake.doors import asked_record, asker, doors_of
from daemon.intake.operations import Answer, Content, Operation, Who, json_answer
from daemon.intake.problems import Problem, no_such_record
from storage.claim import NotFound
from storage.daemons import takes_writes
from storage.errors import DatabaseUnavailable
from storage.explaining import read_facts
from storage.record import Record

LOOK_SECONDS = 2.0  # whoever asks whether we are ready will not wait for long


@frozen(kw_only=True)
class Inside:
    """What the doors may tell of their own process; each is asked anew for every request."""

    silent: Callable[[], frozenset[str]]
    closed_lanes: Callable[[], Mapping[str, str]]
    exposition: Callable[[], Awaitable[bytes]]
    milestone_limit: Callable[[Record | None], float | None]
    models: tuple[str, ...]  # that may be asked for by name


async def show_alive(_: Request) -> Response:
    """Say that the process is alive, and nothing of the rest."""
    return JSONResponse({"status": "alive"})


async def show_ready(request: Request) -> Response:
    """Say whether this process can take recordings and work on them; 503 when it cannot.

    A closed lane is told and is no 503: recordings are taken, and those that do not need it are worked on.
    """
    await _owner(request)
    doors, inside = doors_of(request), inside_of(request)
    database = await _database(request)
    silent, closed = sorted(inside.silent()), dict(inside.closed_lanes())
    missing = [
        *([] if database is None else [database]),
        *(f"{name} has not been heard from in its time" for name in silent),
        *(["the service is stopping"] if doors.stopping() else []),
    ]
    shown: dict[str, Any] = {
        "ready": not missing,
        "not_ready": missing,
        "database": "ok" if database is None else database,
        "silent": silent,
        "closed_lanes": closed,
        "stopping": doors.stopping(),
    }
    return JSONResponse(shown, HTTPStatus.SERVICE_UNAVAILABLE if missing else HTTPStatus.OK)


async def show_metrics(request: Request) -> Response:
    """Answer with the numbers, in Prometheus' text format."""
    await _owner(request)
    kind = "text/plain; version=0.0.4; charset=utf-8"
    return Response(await inside_of(request).exposition(), headers={"Content-Type": kind})


async def show_explanation(request: Request) -> Response:
    """Tell why a record is where it is, and what keeps it from being claimed."""
    await _owner(request)
    facts = await read_facts(doors_of(request).database, asked_record(request))
    if isinstance(facts, NotFound):
        raise no_such_record()
    limit = inside_of(request).milestone_limit(facts.record)
    return JSONResponse(as_plain(facts, explain(facts, limit), limit))


def inside_of(request: Request) -> Inside:
    """Return what the process tells of itself."""
    inside = request.app.state.inside
    assert isinstance(inside, Inside)  # noqa: S101 - Starlette's state takes anything
    return inside


async def _owner(request: Request) -> None:
    """Let in whoever may open the service's own socket, and over TCP an account that is the service owner's.

    The socket is readable for the service owner's group alone, and no token is asked for there.
    """
    if request.scope["server"] is None:  # no address: not TCP
        return
    if (await asker(request)).is_service_owner:
        return
    raise Problem(
        HTTPStatus.FORBIDDEN,
        "forbidden",
        "This is for the service owner; ask on the service's unix socket, or with the token of an account "
        "that has this role.",
    )


async def _database(request: Request) -> str | None:
    try:
        writable = await takes_writes(doors_of(request).database, LOOK_SECONDS)
    except DatabaseUnavailable as error:
        return str(error)
    return None if writable else "the database takes no writes"


@frozen(kw_only=True)
class ShownAlive:
    """The process lives; nothing is said of the rest."""

    status: Literal["alive"]


@frozen(kw_only=True)
class ShownReady:
    """Whether recordings are taken and worked on, and what is in the way."""

    ready: bool
    not_ready: Annotated[tuple[str, ...], "A sentence for each thing that is not well."]
    database: str
    silent: tuple[str, ...]
    closed_lanes: Mapping[str, str]
    stopping: bool


_NUMBERS = Answer(
    says="The numbers, in Prometheus' text format.",
    contents=(Content(media="text/plain", shape={"type": "string"}),),
)
_FOR_THE_OWNER = ((401, "unauthorized"), (403, "forbidden"))

OPERATIONS = (
    Operation(
        method="GET",
        path="/healthz",
        name="showAlive",
        says="The sign of life; the one route that anybody may ask.",
        raw=show_alive,
        who=Who.ANYBODY,
        answers={200: json_answer("The process is alive.", ShownAlive)},
        tag="service",
    ),
    Operation(
        method="GET",
        path="/readyz",
        name="showReady",
        says="Whether recordings are taken and worked on.",
        raw=show_ready,
        who=Who.OWNER,
        answers={200: json_answer("All is well.", ShownReady), 503: json_answer("It is not.", ShownReady)},
        problems=_FOR_THE_OWNER,
        tag="service",
    ),
    Operation(
        method="GET",
        path="/metrics",
        name="showMetrics",
        says="The service's numbers.",
        raw=show_metrics,
        who=Who.OWNER,
        answers={200: _NUMBERS},
        problems=_FOR_THE_OWNER,
        tag="service",
    ),
    Operation(
        method="GET",
        path="/v1/service/records/{id}/explanation",
        name="explainRecord",
        says="Why a record is where it is.",
        raw=show_explanation,
        who=Who.OWNER,
        answers={200: json_answer("The explanation.", {"type": "object"})},
        problems=((404, "not_found"), (503, "database_unavailable"), *_FOR_THE_OWNER),
        tag="service",
    ),
)

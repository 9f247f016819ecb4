"""The doors, put together from what each room of theirs declares."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response

from daemon.intake import (
    correcting,
    editing,
    history,
    listening,
    listing,
    polling,
    service,
    submitting,
    transcripts,
    tus,
    tus_operations,
)
from daemon.intake.compatible import routes as compatible
from daemon.intake.doors import Doors
from daemon.intake.named_requests import NamedRequests
from daemon.intake.openapi import described
from daemon.intake.operations import Asked, Operation, json_answer, routes_of
from daemon.intake.polls import Polls
from daemon.intake.problems import TOLD, ContainedErrors
from daemon.intake.service import Inside
from daemon.settings import IntakeSettings
from storage.audio import Store
from storage.database import Database


def intake_app(
    *,
    database: Database,
    store: Store,
    accept_lane: str,
    settings: IntakeSettings,
    stopping: Callable[[], bool],
    polls: Polls,
    inside: Inside,
) -> Starlette:
    """Return the doors as an ASGI application; while `stopping()`, only submissions are refused.

    New records wait in `accept_lane` for the first stage; `polls` is where questions are asked together;
    `inside` is what the service owner may ask.
    """
    app = Starlette(
        routes=routes_of(OPERATIONS),
        middleware=[Middleware(NamedRequests), Middleware(tus.TusHeaders), Middleware(ContainedErrors)],
        exception_handlers=TOLD,
    )
    app.router.redirect_slashes = False  # there is one name for each thing
    app.state.doors = Doors(
        database=database,
        store=store,
        lane=accept_lane,
        settings=settings,
        stopping=stopping,
        polls=polls,
    )
    app.state.inside = inside
    return app


async def show_description(_: Asked) -> Response:
    """Describe the API to programs."""
    return JSONResponse(DESCRIPTION)


OPERATIONS: tuple[Operation, ...] = (
    *submitting.OPERATIONS,
    *tus_operations.OPERATIONS,
    *listing.OPERATIONS,
    *polling.OPERATIONS,
    *editing.OPERATIONS,
    *correcting.OPERATIONS,
    *history.OPERATIONS,
    *transcripts.OPERATIONS,
    *listening.OPERATIONS,
    *compatible.OPERATIONS,
    Operation(
        method="GET",
        path="/openapi.json",
        name="showDescription",
        says="This description.",
        handler=show_description,
        answers={200: json_answer("OpenAPI 3.1.", {"type": "object"})},
        tag="service",
    ),
    *service.OPERATIONS,
)

DESCRIPTION = described(OPERATIONS)

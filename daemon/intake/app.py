"""The routes."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from daemon.intake.doors import Doors, asked_record, asker, doors_of
from daemon.intake.problems import TOLD, ContainedErrors, no_such_record
from daemon.intake.service import Inside, show_explanation, show_metrics, show_ready
from daemon.intake.shapes import shown_event, shown_record
from daemon.intake.submitting import submit
from daemon.settings import IntakeSettings
from storage.audio import Store
from storage.claim import NotFound
from storage.database import Database
from storage.events import read_events
from storage.readiness import read_readiness


def intake_app(
    *,
    database: Database,
    store: Store,
    accept_lane: str,
    settings: IntakeSettings,
    stopping: Callable[[], bool],
    inside: Inside,
) -> Starlette:
    """Return the doors as an ASGI application; while `stopping()`, only submissions are refused.

    New records wait in `accept_lane` for the first stage; `inside` is what the service owner may ask.
    """
    app = Starlette(
        routes=[
            Route("/v1/records", submit, methods=["POST"]),
            Route("/v1/records/{id}", show_record, methods=["GET"]),
            Route("/v1/records/{id}/events", show_events, methods=["GET"]),
            Route("/v1/service/records/{id}/explanation", show_explanation, methods=["GET"]),
            Route("/healthz", show_alive, methods=["GET"]),
            Route("/readyz", show_ready, methods=["GET"]),
            Route("/metrics", show_metrics, methods=["GET"]),
        ],
        middleware=[Middleware(ContainedErrors)],
        exception_handlers=TOLD,
    )
    app.state.doors = Doors(
        database=database,
        store=store,
        lane=accept_lane,
        settings=settings,
        stopping=stopping,
    )
    app.state.inside = inside
    return app


async def show_record(request: Request) -> Response:
    """Answer the readiness poll."""
    account = await asker(request)
    readiness = await read_readiness(doors_of(request).database, asked_record(request), account.id)
    if isinstance(readiness, NotFound):
        raise no_such_record()
    again = readiness.ask_again_seconds
    headers = {} if again is None else {"Retry-After": str(again)}
    return JSONResponse(shown_record(readiness), headers=headers)


async def show_events(request: Request) -> Response:
    """Answer with a record's history, the oldest event first."""
    account = await asker(request)
    events = await read_events(doors_of(request).database, asked_record(request), account.id)
    if isinstance(events, NotFound):
        raise no_such_record()
    return JSONResponse({"events": [shown_event(event) for event in events]})


async def show_alive(_: Request) -> Response:
    """Say that the process is alive, and nothing of the rest."""
    return JSONResponse({"status": "alive"})

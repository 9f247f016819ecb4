"""The doors and, on the same server, bare routes: `python -m tests.bench.doors_server DSN FOLDER`.

Says who may ask, and what for, as JSON; serves until its stdin ends.
"""

import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from daemon.intake import Inside, Polls, intake_app
from daemon.intake.shapes import shown_record
from daemon.journal import configure
from daemon.settings import IntakeSettings
from daemon.web import serve_web
from storage.audio import Store, fsync_folder
from storage.database import Database, open_database, open_loop
from storage.mounting import mount_store
from storage.readiness import Readiness, read_readiness
from tests.making import LANE, a_record, an_account


async def _serve(dsn: str, folder: Path) -> None:
    async with (
        open_loop(),
        open_database(dsn, pool_size=8, call_seconds=10, statement_seconds=5, listen=True) as database,
        trio.open_nursery() as nursery,
    ):
        (folder / "store").mkdir()
        (folder / "kept").mkdir()
        store = await mount_store(database, folder / "store")
        account, secret = await an_account(database)
        record_id = await a_record(database, store, account)
        readiness = await read_readiness(database, record_id, account.id)
        assert isinstance(readiness, Readiness)
        polls = Polls(database)
        nursery.start_soon(polls.changes.listen, database)
        app = _app(database, store, polls)
        shown = shown_record(readiness)

        async def bare(_: Request) -> Response:
            await trio.lowlevel.checkpoint()
            return JSONResponse(shown)

        async def bare_upload(request: Request) -> Response:
            size = 0
            async for chunk in request.stream():
                size += len(chunk)
            return JSONResponse({"size": size}, 201)

        async def bare_keeping(request: Request) -> Response:
            data = b"".join([chunk async for chunk in request.stream()])
            size = await trio.to_thread.run_sync(_keep, folder / "kept", data)
            return JSONResponse({"size": size}, 201)

        app.router.routes += [
            Route("/bare", bare),
            Route("/bare-upload", bare_upload, methods=["POST"]),
            Route("/bare-keeping", bare_keeping, methods=["POST"]),
        ]
        await nursery.start(partial(serve_web, app, socket=folder / "doors.sock"))
        sys.stdout.write(json.dumps({"token": secret, "record": str(record_id)}) + "\n")
        sys.stdout.flush()
        await trio.to_thread.run_sync(sys.stdin.read)
        nursery.cancel_scope.cancel()


def _keep(top: Path, data: bytes) -> int:
    """Have `data` and its name on the disk for good, in a folder of its own: no intake can do with less."""
    folder = Path(tempfile.mkdtemp(dir=top))
    with (folder / "source").open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fsync_folder(folder)
    fsync_folder(top)
    return len(data)


async def _no_numbers() -> bytes:
    await trio.lowlevel.checkpoint()
    return b""


def _app(database: Database, store: Store, polls: Polls) -> Starlette:
    return intake_app(
        database=database,
        store=store,
        accept_lane=LANE,
        settings=IntakeSettings(open_uploads=64, account_uploads=64, queued_hours=0),
        stopping=lambda: False,
        polls=polls,
        inside=Inside(
            silent=frozenset,
            closed_lanes=dict,
            exposition=_no_numbers,
            milestone_limit=lambda _: None,
            models=(),
        ),
    )


if __name__ == "__main__":
    configure("json", "warning")
    trio.run(_serve, sys.argv[1], Path(sys.argv[2]))

"""`POST /v1/records`: the bytes durable, then the row committed, then the answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from uuid import UUID

import structlog
import trio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from daemon.intake.body import Body, empty_body, too_large
from daemon.intake.doors import Doors, asker, doors_of
from daemon.intake.multipart import Form, boundary_of
from daemon.intake.options import Options, read_options
from daemon.intake.problems import Problem
from daemon.intake.shapes import shown_record
from storage.account import Account
from storage.audio import Received, Receiving
from storage.claim import NotFound
from storage.errors import DatabaseUnavailable, DataRefused
from storage.ids import new_id
from storage.readiness import read_readiness
from storage.submissions import Submission, accept

_RETRY_STOPPING = 10
_RETRY_BUSY = 5
_FORM_BYTES = 256 * 1024  # what a form may hold besides its file

log = structlog.get_logger()


async def submit(request: Request) -> Response:
    """Receive a recording; from the 201 on it cannot be lost."""
    doors = doors_of(request)
    if doors.stopping():
        raise _come_again("stopping", "The service is stopping; try again in a moment.", _RETRY_STOPPING)
    account = await asker(request)
    record_id = new_id()
    async with _upload(doors), doors.store.receive(record_id) as receiving:
        try:
            options = await _receive(request, receiving, doors.largest_bytes)
        except ClientDisconnect:
            log.info("submission.broken_off", owner=account.name, bytes=receiving.size)
            raise
        received = await receiving.keep()
        await _accept(doors, account, receiving, received, options)
    log.info("submission.accepted", record=record_id, owner=account.name, bytes=received.size)
    location = {"Location": f"/v1/records/{record_id}"}
    return JSONResponse(await _shown(doors, record_id, account), HTTPStatus.CREATED, location)


async def _receive(request: Request, receiving: Receiving, largest: int) -> Options:
    """Bring the recording into the store; wrong options of a plain body are told before it is read."""
    given = request.query_params.multi_items()
    boundary = boundary_of(request.headers.get("content-type"))
    if boundary is None:
        options = read_options(given)
        body = Body(request, largest)
        while chunk := await body.read():
            await receiving.write(chunk)
    else:
        form, body = Form(boundary), Body(request, largest + _FORM_BYTES)
        while chunk := await body.read():
            await receiving.write(form.feed(chunk))
            if receiving.size > largest:
                raise too_large(largest)
        form.finish()
        options = _form_options([*given, *form.fields], form.filename)
    if not receiving.size:
        raise empty_body()
    return options


def _form_options(given: list[tuple[str, str]], filename: str) -> Options:
    """Return the options of a form; the file's own name counts unless another is given."""
    named = any(name == "filename" for name, _ in given)
    return read_options(given if named else [*given, ("filename", filename)])


async def _accept(
    doors: Doors, account: Account, receiving: Receiving, received: Received, options: Options
) -> None:
    submission = Submission(
        id=receiving.record_id,
        owner_id=account.id,
        filename=options.filename,
        title=options.title,
        description=options.description,
        topics=options.topics,
        asked_language=options.asked_language,
        channels=options.channels,
        track=options.track,
        hotwords=options.hotwords,
        store_id=doors.store.id,
        source_path=received.path,
        source_bytes=received.size,
        source_sha256=received.sha256,
    )
    try:
        await accept(doors.database, submission, lane=doors.lane)
    except DataRefused:
        receiving.abandon()  # refused is not committed: no row names these bytes
        raise
    except DatabaseUnavailable as error:
        log.warning("submission.unresolved", record=submission.id, owner=account.name, cause=str(error))
        raise


async def _shown(doors: Doors, record_id: UUID, account: Account) -> dict[str, Any]:
    """Return the record as the poll shows it; it is accepted also when it cannot be read just now."""
    try:
        readiness = await read_readiness(doors.database, record_id, account.id)
    except DatabaseUnavailable:
        return {"id": str(record_id)}
    return {"id": str(record_id)} if isinstance(readiness, NotFound) else shown_record(readiness)


@asynccontextmanager
async def _upload(doors: Doors) -> AsyncIterator[None]:
    """Take one of the places for uploads, at once or not at all."""
    try:
        doors.uploads.acquire_nowait()
    except trio.WouldBlock:
        detail = "The service is receiving as many recordings as it can; try again in a moment."
        raise _come_again("busy", detail, _RETRY_BUSY) from None
    try:
        yield
    finally:
        doors.uploads.release()


def _come_again(code: str, detail: str, seconds: int) -> Problem:
    headers = {"Retry-After": str(seconds)}
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, code, detail, headers=headers)

"""Resumable uploads at `/v1/uploads`: tus 1.0.0, where the last byte makes the record."""

from http import HTTPStatus
from uuid import UUID

import structlog
import trio
from attrs import asdict
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.intake.admission import admit
from daemon.intake.body import empty_body, too_large
from daemon.intake.doors import Doors, asker, doors_of, open_doors
from daemon.intake.options import read_options
from daemon.intake.problems import Problem, come_again
from daemon.intake.tus_headers import (
    ALGORITHMS,
    CONTENT_TYPE,
    EXTENSIONS,
    VERSION,
    asked_bytes,
    asked_checksum,
    check_version,
    headers_of,
    is_part,
    read_metadata,
)
from daemon.intake.tus_parts import named, receive_part
from storage.account import Account
from storage.errors import DatabaseUnavailable
from storage.ids import new_id
from storage.upload import Upload
from storage.upload_files import remove_upload
from storage.uploads import Begun, TooMany, begin_upload, drop_upload, read_upload

_PATH = "/v1/uploads"
_HOUR = 3600.0
_DROP_SECONDS = 5.0
_RETRY_MANY = 60
_RETRY_ELSEWHERE = 10

log = structlog.get_logger()


async def begin(request: Request) -> Response:
    """`OPTIONS` tells what is spoken here; `POST` begins an upload, perhaps with its first bytes."""
    if request.method == "OPTIONS":
        return await _tell_terms(request)
    doors = open_doors(request)
    account = await asker(request)
    check_version(request.headers)
    checksum = asked_checksum(request.headers)
    upload = await _begun(request, doors, account)
    headers = {"Location": f"{_PATH}/{upload.id}"}
    if is_part(request):
        finished = False
        try:
            upload = await receive_part(request, doors, account, upload, 0, checksum)
            finished = True
        finally:
            if not finished:  # its sender does not know where it is, so nobody would go on with it
                with trio.move_on_after(_DROP_SECONDS, shield=True):
                    await _drop_if_possible(doors, account, upload.id)
    return Response(status_code=HTTPStatus.CREATED, headers=headers | headers_of(upload))


async def continue_(request: Request) -> Response:
    """`HEAD` tells how far an upload is, `PATCH` goes on with it, `DELETE` gives it up."""
    method = request.method
    if method == "POST":  # from where the other methods do not get through
        method = request.headers.get("x-http-method-override", "").upper()
    match method:
        case "HEAD":
            return await _tell(request)
        case "PATCH":
            return await _go_on(request)
        case "DELETE":
            return await _give_up(request)
        case _:
            detail = "An upload is asked for by HEAD, continued by PATCH and given up by DELETE."
            raise Problem(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", detail)


async def _tell_terms(request: Request) -> Response:
    await asker(request)
    headers = {
        "Tus-Version": VERSION,
        "Tus-Extension": EXTENSIONS,
        "Tus-Checksum-Algorithm": ",".join(ALGORITHMS),
        "Tus-Max-Size": str(doors_of(request).settings.largest_bytes),
    }
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)


async def _begun(request: Request, doors: Doors, account: Account) -> Upload:
    if "upload-defer-length" in request.headers:
        detail = "How long an upload will be must be known when it begins; send Upload-Length."
        raise Problem(HTTPStatus.BAD_REQUEST, "length_required", detail)
    size = asked_bytes(request.headers, "Upload-Length")
    metadata = request.headers.get("upload-metadata", "")
    options = read_options(read_metadata(metadata))
    if not size:
        raise empty_body()
    if size > doors.settings.largest_bytes:
        raise too_large(doors.settings.largest_bytes)
    await admit(doors, account)
    await doors.store.check_room(size)
    begun = Begun(
        id=new_id(),
        account_id=account.id,
        store_id=doors.store.id,
        bytes=size,
        metadata=metadata,
        options=asdict(options),
        kept_seconds=doors.settings.unfinished_hours * _HOUR,
    )
    upload = await begin_upload(doors.database, begun, doors.settings.account_unfinished)
    if isinstance(upload, TooMany):
        most = doors.settings.account_unfinished
        detail = f"This account has {most} unfinished uploads, and may have no more; finish some."
        raise come_again(HTTPStatus.TOO_MANY_REQUESTS, "too_many_unfinished", detail, _RETRY_MANY)
    log.info("upload.begun", record=upload.id, bytes=size, **named(account))
    return upload


async def _tell(request: Request) -> Response:
    doors = doors_of(request)
    account = await asker(request)
    check_version(request.headers)
    upload = await _known(request, doors, account)
    if await doors.turns.interrupt(upload.id):
        upload = await _known(request, doors, account)
    headers = {"Upload-Length": str(upload.bytes), "Cache-Control": "no-store", **headers_of(upload)}
    if upload.metadata:
        headers["Upload-Metadata"] = upload.metadata
    return Response(status_code=HTTPStatus.OK, headers=headers)


async def _go_on(request: Request) -> Response:
    doors = open_doors(request)
    account = await asker(request)
    check_version(request.headers)
    upload = await _known(request, doors, account)
    if not is_part(request):
        detail = f"A part of an upload must be sent as {CONTENT_TYPE}."
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    offset = asked_bytes(request.headers, "Upload-Offset")
    checksum = asked_checksum(request.headers)
    upload = await receive_part(request, doors, account, upload, offset, checksum)
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers_of(upload))


async def _give_up(request: Request) -> Response:
    doors = doors_of(request)
    account = await asker(request)
    check_version(request.headers)
    upload = await _known(request, doors, account)
    await doors.turns.interrupt(upload.id)
    if upload.finished_at is not None or not await _drop(doors, account, upload.id):
        detail = f"This upload has become a record; delete that: /v1/records/{upload.id}."
        raise Problem(HTTPStatus.CONFLICT, "finished", detail)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def _drop_if_possible(doors: Doors, account: Account, upload_id: UUID) -> None:
    """Drop an upload; where the database is away its lease does so."""
    try:
        await _drop(doors, account, upload_id)
    except DatabaseUnavailable as error:
        log.info("upload.undropped", record=upload_id, cause=str(error))


async def _drop(doors: Doors, account: Account, upload_id: UUID) -> bool:
    """Forget an unfinished upload with its bytes; False when it has become a record."""
    dropped = await drop_upload(doors.database, upload_id, account.id)
    if dropped:
        await doors.store.in_thread(remove_upload, doors.store, upload_id)
    return dropped


async def _known(request: Request, doors: Doors, account: Account) -> Upload:
    """Return the upload in the request's path, if it is the account's and its bytes are here."""
    upload = await read_upload(doors.database, asked_upload(request), account.id)
    if upload is None:
        raise no_such_upload()
    if upload.store_id != doors.store.id:
        detail = "The bytes of this upload are with another daemon of this service; go on with it there."
        raise come_again(HTTPStatus.SERVICE_UNAVAILABLE, "elsewhere", detail, _RETRY_ELSEWHERE)
    return upload


def asked_upload(request: Request) -> UUID:
    """Return the id in the request's path; one that cannot be an id of ours is an unknown upload."""
    text = request.path_params["id"]
    try:
        upload_id = UUID(text)
    except ValueError:
        raise no_such_upload() from None
    if str(upload_id) != text.lower():
        raise no_such_upload()
    return upload_id


def no_such_upload() -> Problem:
    """Say the same of an unknown upload, one whose days are over, and somebody else's."""
    detail = "There is no such upload, its days are over, or it is not yours; begin a new one."
    return Problem(HTTPStatus.NOT_FOUND, "not_found", detail)


class TusHeaders:
    """Says of every answer about uploads, the refusals too, which version is spoken here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application."""
        if not scope.get("path", "").startswith(_PATH):
            await self._app(scope, receive, send)
            return

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"tus-resumable", VERSION.encode())]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, telling)

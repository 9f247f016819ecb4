"""One part of a resumable upload on its way in: flushed and counted, and a record with the last byte."""

from http import HTTPStatus
from typing import Any
from uuid import uuid4

import structlog
import trio
from attrs import evolve
from starlette.requests import ClientDisconnect, Request

from daemon.intake.body import Body
from daemon.intake.doors import Doors
from daemon.intake.options import Options
from daemon.intake.problems import OtherStatus, Problem, refused
from daemon.intake.turns import Turn, locked, taken_over
from daemon.intake.tus_headers import ALGORITHMS, Checksum
from storage.account import Account
from storage.errors import DatabaseUnavailable, DataRefused, NoSpace
from storage.submissions import Submission
from storage.upload import Upload
from storage.upload_files import UploadBusy, UploadFile, UploadGone, resumed
from storage.uploads import UploadLost, count_received, drop_upload, finish_upload, hold_upload

COUNT_BYTES = 16 * 2**20  # after a crash no more than this is to be sent again ...
COUNT_SECONDS = 5.0  # ... or what came in this time
_LAST_COUNT_SECONDS = 5.0
_HOUR = 3600.0
_MISMATCH = OtherStatus(460, "Checksum Mismatch")

log = structlog.get_logger()


async def receive_part(
    request: Request, doors: Doors, account: Account, upload: Upload, offset: int, checksum: Checksum | None
) -> Upload:
    """Receive the body as the bytes from `offset` on; return the upload as it is then."""
    with doors.places.taken(account.id):
        async with doors.turns.mine(upload.id) as turn:
            try:
                async with resumed(doors.store, upload.id) as file:
                    part = _Part(doors, account, upload, file)
                    return await part.receive(request, turn, offset, checksum)
            except UploadBusy:
                raise locked() from None
            except UploadLost:
                raise taken_over() from None


class _Part:
    """One request at one upload, whose writes count until the next one comes."""

    def __init__(self, doors: Doors, account: Account, upload: Upload, file: UploadFile) -> None:
        self._doors = doors
        self._account = account
        self._upload = upload
        self._file = file
        self._holder = uuid4()
        self._kept_seconds = doors.settings.unfinished_hours * _HOUR
        self._count_at = trio.current_time() + COUNT_SECONDS

    async def receive(self, request: Request, turn: Turn, offset: int, checksum: Checksum | None) -> Upload:
        await self._hold()
        if self._upload.finished_at is not None:
            await self._file.forget()  # left by a crash after the commit, or made anew by being asked for
        if offset != self._upload.received:
            raise _wrong_offset(self._upload.received)
        body = Body(request, self._upload.bytes - offset, _too_much)
        if self._upload.finished_at is not None:
            return self._upload
        await self._go_on_there()
        digest = None if checksum is None else ALGORITHMS[checksum.name]()
        try:
            await self._take(body, turn, digest)
        except BaseException:
            if digest is None:  # what was not checked is not kept
                with trio.move_on_after(_LAST_COUNT_SECONDS, shield=True):
                    await self._count_what_came()
            raise
        if checksum is not None and digest is not None and digest.digest() != checksum.digest:
            raise _mismatch()
        if self._file.size == self._upload.bytes:
            await self._finish()
        else:
            await self._count()
        return self._upload

    async def _hold(self) -> None:
        held = await hold_upload(
            self._doors.database, self._upload.id, self._account.id, self._holder, self._kept_seconds
        )
        if held is None:
            await self._file.forget()  # its other name is a record's, perhaps: that one is not ours to take
            raise UploadLost("the upload was given up meanwhile, or its days were over")
        self._upload = held

    async def _go_on_there(self) -> None:
        try:
            await self._file.go_on_at(self._upload.received)
        except UploadGone as error:
            cause = str(error)
        else:
            return
        log.error("upload.gone", record=self._upload.id, cause=cause, **named(self._account))
        if await drop_upload(self._doors.database, self._upload.id, self._account.id):
            await self._file.remove()
        detail = "What was sent of this upload is not there any more; begin a new one."
        raise Problem(HTTPStatus.GONE, "upload_gone", detail)

    async def _take(self, body: Body, turn: Turn, digest: Any) -> None:  # noqa: ANN401 - hashlib's own class has no name
        """Write what comes, for as long as nobody else has the turn."""
        with turn.receiving:
            try:
                while chunk := await body.read():
                    await self._file.write(chunk)
                    if digest is not None:
                        digest.update(chunk)
                    elif self._is_time_to_count():
                        await self._count()
            except ClientDisconnect:
                log.info(
                    "upload.broken_off",
                    record=self._upload.id,
                    bytes=self._file.size,
                    **named(self._account),
                )
                raise
        if turn.receiving.cancelled_caught:
            raise taken_over()

    def _is_time_to_count(self) -> bool:
        ahead = self._file.size - self._upload.received
        return ahead >= COUNT_BYTES or trio.current_time() >= self._count_at

    async def _count(self) -> None:
        """Make durable what came, and count it: all but the last byte, which is counted with the record."""
        await self._file.flush()
        received = min(self._file.flushed, self._upload.bytes - 1)
        until = await count_received(
            self._doors.database, self._upload.id, self._holder, received, self._kept_seconds
        )
        self._upload = evolve(self._upload, received=received, expires_at=until)
        self._count_at = trio.current_time() + COUNT_SECONDS

    async def _count_what_came(self) -> None:
        """Do so for a request that has ended otherwise; what is not counted will be sent again."""
        try:
            await self._count()
        except (DatabaseUnavailable, UploadLost, NoSpace) as error:
            log.info("upload.uncounted", record=self._upload.id, cause=str(error))

    async def _finish(self) -> None:
        """Make the record: the bytes first, durably under its name, then the row."""
        doors, upload = self._doors, self._upload
        received = await self._file.keep()
        submission = Submission(
            id=upload.id,
            owner_id=self._account.id,
            store_id=doors.store.id,
            source_path=received.path,
            source_bytes=received.size,
            source_sha256=received.sha256,
            **_options(upload),
        )
        if (why := await self._finished(submission)) is not None:
            if await drop_upload(doors.database, upload.id, self._account.id):
                await self._file.remove()
            raise refused(why, self._account)
        await self._file.forget()
        log.info("submission.accepted", record=upload.id, bytes=received.size, **named(self._account))
        self._upload = evolve(upload, received=upload.bytes, finished_at=upload.expires_at)

    async def _finished(self, submission: Submission) -> DataRefused | None:
        """Commit the record; return why the database does not take it, if it does not."""
        try:
            await finish_upload(self._doors.database, submission, self._holder, lane=self._doors.lane)
        except DatabaseUnavailable as error:
            cause = str(error)
            log.warning("submission.unresolved", record=submission.id, cause=cause, **named(self._account))
            raise
        except DataRefused as error:
            return error
        return None


def named(account: Account) -> dict[str, str]:
    """Return the facts that name an account in the log."""
    return {"owner": str(account.id), "account": account.name}


def _options(upload: Upload) -> dict[str, Any]:
    options = Options(**{**upload.options, "topics": tuple(upload.options["topics"])})
    return {name: getattr(options, name) for name in upload.options}


def _wrong_offset(received: int) -> Problem:
    detail = f"The upload is at byte {received}; go on from there."
    headers = {"Upload-Offset": str(received)}
    return Problem(HTTPStatus.CONFLICT, "wrong_offset", detail, headers=headers)


def _too_much(most: int) -> Problem:
    detail = f"The upload lacks {most} bytes, and the request brings more; send what was announced."
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", detail)


def _mismatch() -> Problem:
    detail = "The bytes do not have the checksum that was announced; send them again from the same offset."
    return Problem(_MISMATCH, "checksum_mismatch", detail)

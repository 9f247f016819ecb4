"""`POST /v1/records`: the bytes durable, then the row committed, then the answer."""

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any
from uuid import UUID

import structlog
from attrs import asdict
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from daemon.intake.admission import admit
from daemon.intake.doors import Doors, asker, open_doors
from daemon.intake.keys import asked_key, key_in_use, key_reused, payload_of, while_held
from daemon.intake.operations import Content, Operation, json_answer
from daemon.intake.options import OPTION_PARAMETERS, Options
from daemon.intake.problems import refused
from daemon.intake.queries import Parameter
from daemon.intake.receiving import Sink, Weighed, receive
from daemon.intake.shapes import ShownRecord, shown_record
from storage.account import Account
from storage.audio import Receiving
from storage.claim import NotFound
from storage.errors import DatabaseUnavailable, DataRefused
from storage.ids import new_id
from storage.keys import HeldKey, KeyInUse, KeyLost, UsedKey, keep_answer, take_key
from storage.readiness import read_readiness
from storage.submissions import Submission, accept, accept_or_find, accept_under_key

Receive = Callable[[Sink], Awaitable[Options]]

log = structlog.get_logger()


async def submit(request: Request) -> Response:
    """Receive a recording; from the 201 on it cannot be lost."""
    doors = open_doors(request)
    account = await asker(request)
    bring = partial(receive, request, largest=doors.settings.largest_bytes)
    key = asked_key(request)
    if key is None:
        record_id = await take_in(doors, account, bring)
        return _created(record_id, await _shown(doors, record_id, account))
    match await take_key(doors.database, account.id, key):
        case KeyInUse():
            raise key_in_use()
        case UsedKey() as used:
            return await _replayed(doors, account, used, bring)
        case HeldKey() as held:
            work = partial(take_in, doors, account, bring, held)
            record_id = await while_held(doors.database, held, work)
            return await _answered(doors, account, key, record_id)


async def take_in(
    doors: Doors, account: Account, bring: Receive, held: HeldKey | None = None, *, same_again: bool = False
) -> UUID:
    """Make a record of what `bring` writes into a sink, for which it returns the options; return its id.

    With `same_again` a recording that the account has already, sent with the same options, is no new record.
    """
    await admit(doors, account)
    record_id = new_id()
    with doors.places.taken(account.id):
        async with doors.store.receive(record_id) as receiving:
            try:
                options = await bring(receiving)
            except ClientDisconnect:
                log.info(
                    "submission.broken_off", owner=str(account.id), account=account.name, bytes=receiving.size
                )
                raise
            accepted = await _accept(doors, account, receiving, options, held, same_again=same_again)
    log.info(
        "submission.accepted",
        record=accepted,
        owner=str(account.id),
        account=account.name,
        bytes=receiving.size,
    )
    return accepted


async def _accept(
    doors: Doors,
    account: Account,
    receiving: Receiving,
    options: Options,
    held: HeldKey | None,
    *,
    same_again: bool,
) -> UUID:
    received = await receiving.keep()
    submission = Submission(
        id=receiving.record_id,
        owner_id=account.id,
        store_id=doors.store.id,
        source_path=received.path,
        source_bytes=received.size,
        source_sha256=received.sha256,
        **asdict(options, recurse=False),
    )
    try:
        if held is not None:
            payload = payload_of(options, received.sha256)
            return await accept_under_key(doors.database, submission, held, payload, lane=doors.lane)
        if not same_again:
            return await accept(doors.database, submission, lane=doors.lane)
        accepted = await accept_or_find(doors.database, submission, lane=doors.lane)
        if accepted != submission.id:
            receiving.abandon()  # the record there is has bytes of its own
        return accepted
    except DataRefused as error:
        receiving.abandon()  # refused is not committed: no row names these bytes
        raise refused(error, account) from None
    except KeyLost:
        receiving.abandon()  # the same: the row was rolled back with the key
        raise key_in_use() from None
    except DatabaseUnavailable as error:
        log.warning(
            "submission.unresolved",
            record=submission.id,
            owner=str(account.id),
            account=account.name,
            cause=str(error),
        )
        raise


async def _replayed(doors: Doors, account: Account, used: UsedKey, bring: Receive) -> Response:
    """Answer as the first time, if what is sent is what was sent."""
    weighed = Weighed()
    with doors.places.taken(account.id):
        options = await bring(weighed)
    if payload_of(options, weighed.sha256) != used.payload_sha256:
        raise key_reused()
    if used.answer is not None:
        return _created(used.record_id, used.answer)
    return await _answered(doors, account, used.key, used.record_id)


async def _answered(doors: Doors, account: Account, key: str, record_id: UUID) -> Response:
    """Give the first answer under a key, which is kept for all that follow."""
    shown = await _shown(doors, record_id, account)
    try:
        shown = await keep_answer(doors.database, account.id, key, record_id, shown)
    except DatabaseUnavailable as error:
        log.info("answer.unkept", record=record_id, cause=str(error))
    return _created(record_id, shown)


async def _shown(doors: Doors, record_id: UUID, account: Account) -> dict[str, Any]:
    """Return the record as the poll shows it; it is accepted also when it cannot be read just now."""
    try:
        readiness = await read_readiness(doors.database, record_id, account.id)
    except DatabaseUnavailable:
        return {"id": str(record_id)}
    return {"id": str(record_id)} if isinstance(readiness, NotFound) else shown_record(readiness)


def _created(record_id: UUID, shown: Any) -> Response:  # noqa: ANN401 - JSON as it was kept
    return JSONResponse(shown, HTTPStatus.CREATED, {"Location": f"/v1/records/{record_id}"})


_RECORDING = {"type": "string", "format": "binary"}
_FORM = {
    "type": "object",
    "properties": {
        "file": _RECORDING,
        **{
            each.name: {"type": "array", "items": each.schema} if each.repeats else each.schema
            for each in OPTION_PARAMETERS
        },
    },
    "required": ["file"],
    "additionalProperties": False,
}
BODY_PROBLEMS = (
    (400, "empty_body"),
    (400, "malformed_form"),
    (408, "too_slow"),
    (413, "too_large"),
    (422, "invalid_options"),
    (429, "too_many_uploads"),
    (429, "queue_full"),
    (503, "busy"),
    (503, "stopping"),
    (507, "no_space"),
)

OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/records",
        name="submitRecording",
        says="Hand in a recording, as the body or as a form. From the 201 on it cannot be lost.",
        raw=submit,
        parameters=(
            *OPTION_PARAMETERS,
            Parameter(
                name="Idempotency-Key",
                place="header",
                says="Of one's own: the same key with the same bytes and options makes no second record.",
                schema={"type": "string"},
            ),
        ),
        body=(
            Content(media="application/octet-stream", shape=_RECORDING),
            Content(media="multipart/form-data", shape=_FORM),
        ),
        answers={
            201: json_answer("The record.", ShownRecord, {"Location": "Where its readiness is asked for."})
        },
        problems=(
            *BODY_PROBLEMS,
            (400, "invalid_idempotency_key"),
            (409, "idempotency_key_in_use"),
            (422, "idempotency_key_reused"),
        ),
        tag="submissions",
    ),
)

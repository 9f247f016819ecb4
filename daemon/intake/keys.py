"""`Idempotency-Key`: a submission sent again under its key makes one record, and is answered alike."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import TypeVar

import structlog
import trio
from attrs import asdict
from starlette.requests import Request

from daemon.intake.beside import work_beside
from daemon.intake.options import Options
from daemon.intake.problems import Problem, come_again
from storage.database import Database
from storage.errors import DatabaseUnavailable
from storage.keys import LEASE_SECONDS, HeldKey, release_key, renew_key

_MOST_LETTERS = 255
_RENEW_SECONDS = LEASE_SECONDS / 3
_RELEASE_SECONDS = 5.0
_RETRY_IN_USE = 3
# A string of structured fields (RFC 8941), as the header is specified, or bare, as it is often sent.
_KEY = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"|([\x21\x23-\x7e]+)')

T = TypeVar("T")

log = structlog.get_logger()


def asked_key(request: Request) -> str | None:
    """Return the key a submission is sent under; raises Problem for what can be none."""
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    found = _KEY.fullmatch(given[0].strip())
    key = "" if found is None else found[2] or re.sub(r"\\(.)", r"\1", found[1])
    if len(given) > 1 or not 1 <= len(key) <= _MOST_LETTERS:
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "invalid_idempotency_key",
            f"Idempotency-Key must come once, with 1 to {_MOST_LETTERS} printable ASCII letters in quotes.",
        )
    return key


def payload_of(options: Options, source_sha256: bytes) -> bytes:
    """Return 32 bytes that are the same for the same audio with the same options, all of them."""
    said = json.dumps(asdict(options), sort_keys=True, separators=(",", ":")).encode("ascii")
    return hashlib.sha256(source_sha256 + said).digest()


async def while_held(database: Database, held: HeldKey, work: Callable[[], Awaitable[T]]) -> T:
    """Do the work that a key was taken for, with its lease renewed; let go of it if that comes to nothing."""
    finished = False
    try:
        result = await work_beside(partial(_renew, database, held), work)
        finished = True
    finally:
        if not finished:
            with trio.move_on_after(_RELEASE_SECONDS, shield=True):
                await _release(database, held)
    return result


def key_in_use() -> Problem:
    """Say that another submission under the same key is being received."""
    detail = "Another submission under this Idempotency-Key is being received; ask again when it is through."
    return come_again(HTTPStatus.CONFLICT, "idempotency_key_in_use", detail, _RETRY_IN_USE)


def key_reused() -> Problem:
    """Say that the key made a record of something else."""
    detail = (
        "This Idempotency-Key was used for other bytes or options; send a new submission under a new key."
    )
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency_key_reused", detail)


async def _renew(database: Database, held: HeldKey) -> None:
    """Renew the lease until cancelled; where that fails, the write of the record decides whose the key is."""
    while True:
        await trio.sleep(_RENEW_SECONDS)
        try:
            await renew_key(database, held)
        except DatabaseUnavailable as error:
            log.debug("key.unrenewed", cause=str(error))


async def _release(database: Database, held: HeldKey) -> None:
    """Let go of the key; where the database is away its lease does so."""
    try:
        await release_key(database, held)
    except DatabaseUnavailable as error:
        log.debug("key.unreleased", cause=str(error))

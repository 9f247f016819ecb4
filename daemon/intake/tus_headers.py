"""The headers of resumable uploads (tus 1.0.0), read and written. No I/O."""

import binascii
import hashlib
import re
from base64 import b64decode
from collections.abc import Callable
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any

from attrs import fields, frozen
from starlette.datastructures import Headers
from starlette.requests import Request

from daemon.intake.options import Options
from daemon.intake.problems import Problem
from storage.upload import Upload

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,checksum,termination,expiration"
ALGORITHMS: dict[str, Callable[[], Any]] = {
    "sha1": hashlib.sha1,
    "sha256": hashlib.sha256,
    "md5": hashlib.md5,
}
CONTENT_TYPE = "application/offset+octet-stream"
_MOST_DIGITS = 18
_KEY = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
# Whatever else a client says of a file (its type, its path on the sender's disk) is not asked for.
_OPTIONS = frozenset({each.name for each in fields(Options)} - {"asked_language"} | {"language"})


@frozen(kw_only=True)
class Checksum:
    """What the body of one request must hash to."""

    name: str
    digest: bytes


def check_version(headers: Headers) -> None:
    """Raise Problem for a client of another version."""
    if headers.get("tus-resumable") != VERSION:
        raise Problem(
            HTTPStatus.PRECONDITION_FAILED,
            "unsupported_version",
            f"The request must say Tus-Resumable: {VERSION}, the version this service speaks.",
            headers={"Tus-Version": VERSION},
        )


def asked_bytes(headers: Headers, name: str) -> int:
    """Return a header that counts bytes; raises Problem for one that is missing or does not."""
    text = headers.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        detail = f"{name} must be a number of bytes; send one of up to {_MOST_DIGITS} digits."
        raise Problem(HTTPStatus.BAD_REQUEST, "invalid_header", detail)
    return int(text)


def asked_checksum(headers: Headers) -> Checksum | None:
    """Return what `Upload-Checksum` asks for; raises Problem for an algorithm unknown here."""
    given = headers.get("upload-checksum")
    if given is None:
        return None
    name, _, encoded = given.partition(" ")
    digest = _decoded(encoded)
    if name not in ALGORITHMS or digest is None or len(digest) != ALGORITHMS[name]().digest_size:
        detail = f"Upload-Checksum must be one of {', '.join(ALGORITHMS)} and the Base64 of its digest."
        raise Problem(HTTPStatus.BAD_REQUEST, "invalid_checksum", detail)
    return Checksum(name=name, digest=digest)


def read_metadata(text: str) -> list[tuple[str, str]]:
    """Return the options that `Upload-Metadata` names; topics stand in one text, separated by commas.

    Raises Problem for what is no metadata.
    """
    pairs: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, _, encoded = part.partition(" ")
        value = _decoded(encoded)
        if not _KEY.fullmatch(key) or key in pairs or value is None:
            raise _no_metadata()
        try:
            pairs[key] = value.decode()
        except UnicodeDecodeError:
            if key in _OPTIONS:
                raise _no_metadata() from None
            pairs[key] = ""  # of somebody else's key
    topics = [("topics", topic.strip()) for topic in pairs.pop("topics", "").split(",")]
    return [(key, value) for key, value in pairs.items() if key in _OPTIONS] + topics


def headers_of(upload: Upload) -> dict[str, str]:
    """Return how far an upload is, how long it is kept, and which record it has become."""
    return {
        "Upload-Offset": str(upload.received),
        "Upload-Expires": format_datetime(upload.expires_at, usegmt=True),
        **({} if upload.finished_at is None else {"Rubezh-Record": str(upload.id)}),
    }


def is_part(request: Request) -> bool:
    """Tell whether a request's body is a part of an upload."""
    return request.headers.get("content-type", "").strip().lower() == CONTENT_TYPE


def _decoded(encoded: str) -> bytes | None:
    try:
        return b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None


def _no_metadata() -> Problem:
    detail = "Upload-Metadata must be pairs of a key and the Base64 of a UTF-8 text, separated by commas."
    return Problem(HTTPStatus.BAD_REQUEST, "invalid_metadata", detail)

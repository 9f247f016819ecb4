"""Styles, scripts and icons: read once, served under the hash of them all, so a browser may keep them.

The hash is a part of the path, `/static/HASH/NAME`, so scripts name each other as files do.
"""

import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable

from attrs import frozen
from starlette.requests import Request
from starlette.responses import Response

from daemon.panel.words import LANGUAGES, script_words

_MEDIA = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOR_GOOD = "public, max-age=31536000, immutable"


@frozen
class StaticFile:
    """A file as it is sent, plain and packed."""

    media: str
    plain: bytes
    packed: bytes


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return every file by its name; a language's words for scripts are one more module each."""
    found = dict(_read(files("daemon.panel") / "static"))
    for language in LANGUAGES:
        words = json.dumps(script_words(language), ensure_ascii=False, sort_keys=True)
        found[f"words.{language}.js"] = f"export default {words};\n".encode()
    return {
        name: StaticFile(_MEDIA[name.rpartition(".")[2]], content, gzip.compress(content, mtime=0))
        for name, content in sorted(found.items())
    }


@cache
def static_hash() -> str:
    """Return the hash of all files, names and contents."""
    digest = hashlib.sha256()
    for name, file in static_files().items():
        digest.update(f"{name}\0{len(file.plain)}\0".encode() + file.plain)
    return digest.hexdigest()[:16]


def static_path(name: str) -> str:
    """Return where a page finds a file; KeyError for one that there is not."""
    if name not in static_files():
        raise KeyError(name)
    return f"/static/{static_hash()}/{name}"


async def send_static(request: Request) -> Response:
    """Answer with a file, for good; one of another version is not mixed with ours."""
    wanted = request.path_params
    file = static_files().get(wanted["name"]) if wanted["hash"] == static_hash() else None
    if file is None:
        return Response(status_code=HTTPStatus.NOT_FOUND, headers={"Cache-Control": "no-store"})
    headers = {
        "Content-Type": file.media,
        "Cache-Control": _FOR_GOOD,
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.plain, headers=headers)


def _read(folder: Traversable) -> Mapping[str, bytes]:
    return {
        file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _MEDIA
    }

"""Answers with the bytes of a file, or a part of them, a block at a time."""

import os
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

import trio
from attrs import frozen
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from daemon.intake.conditions import NotSatisfiable, Part, asked_part
from daemon.intake.problems import Problem, ProblemResponse
from stages.media.wave64 import DamagedCopy
from storage.audio import Store

_BLOCK = 256 * 1024


@frozen(kw_only=True)
class Bytes:
    """What is sent: a head of our own, and `length` bytes from `offset` of a file on."""

    path: Path
    length: int
    head: bytes = b""
    offset: int = 0

    @property
    def size(self) -> int:
        """The bytes of the whole."""
        return len(self.head) + self.length


def answer_bytes(
    content: Bytes, conditions: Mapping[str, str], headers: Mapping[str, str], store: Store
) -> Response:
    """Return the answer to a request under these conditions; `headers` have an ETag."""
    etag = headers["ETag"]
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "private, no-cache", **headers}
    if conditions.get("if-none-match", "").removeprefix("W/") == etag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    wanted = conditions.get("range") if conditions.get("if-range") in (None, etag) else None
    try:
        part = asked_part(wanted, content.size)
    except NotSatisfiable:
        return _past_the_end(content.size)
    return _Bytes(content, part, headers, store)


def _past_the_end(size: int) -> Response:
    detail = f"The audio has {size} bytes; ask for a part of them."
    problem = Problem(
        HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
        "range_not_satisfiable",
        detail,
        headers={"Content-Range": f"bytes */{size}"},
    )
    return ProblemResponse(problem)


class _Bytes(Response):
    """The bytes, or a part of them."""

    def __init__(self, content: Bytes, part: Part | None, headers: Mapping[str, str], store: Store) -> None:
        status = HTTPStatus.OK if part is None else HTTPStatus.PARTIAL_CONTENT
        wanted = part or Part(0, content.size)
        if part is not None:
            last = part.first + part.length - 1
            headers = {**headers, "Content-Range": f"bytes {part.first}-{last}/{content.size}"}
        super().__init__(None, status, {**headers, "Content-Length": str(wanted.length)})
        self._content = content
        self._part = wanted
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head and the blocks; a HEAD request gets none of them."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if scope["method"] != "HEAD":
            with trio.CancelScope() as sending:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_end_with_sender, receive, sending)
                    await self._send_blocks(send)
                    nursery.cancel_scope.cancel(reason="all is sent")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_blocks(self, send: Send) -> None:
        first, left = self._part.first, self._part.length
        file = await self._store.in_thread(os.open, self._content.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while left:
                block = await self._block(file, first, min(left, _BLOCK))
                await send({"type": "http.response.body", "body": block, "more_body": True})
                first, left = first + len(block), left - len(block)
        finally:
            os.close(file)

    async def _block(self, file: int, first: int, most: int) -> bytes:
        head = self._content.head
        if first < len(head):
            return head[first : first + most]
        block = await self._store.in_thread(os.pread, file, most, self._content.offset + first - len(head))
        if not block:
            raise DamagedCopy(f"{self._content.path.name} has become shorter")
        return block


async def _end_with_sender(receive: Receive, sending: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    sending.cancel(reason="the sender has gone")

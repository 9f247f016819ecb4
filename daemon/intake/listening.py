"""`GET /v1/records/{id}/audio`: what was decoded of a recording, to be listened to, in any parts.

The recognition copy is given a WAV's head on the way out: that plays everywhere, and costs no second copy.
Past 4 GiB, which is 37 hours, or 18 of a call, a WAV cannot tell its own length; players go by the length
of the answer.
"""

import os
import struct
from http import HTTPStatus
from pathlib import Path

import trio
from attrs import frozen
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from daemon.intake.conditions import NotSatisfiable, Part, asked_part
from daemon.intake.operations import Answer, Asked, Content, Operation
from daemon.intake.problems import Problem, ProblemResponse
from daemon.intake.queries import Parameter
from daemon.intake.transcripts import disposition
from stages.media.wave64 import RATE, SAMPLE_BYTES, DamagedCopy, read_header
from storage.audio import Store

_BLOCK = 256 * 1024
_MOST_TOLD = 2**32 - 1
_HEAD = struct.Struct("<4sI4s4sIHHIIHH4sI")
_PCM = 1


@frozen(kw_only=True)
class Copy:
    """A WAV that exists in two parts: its head, and the samples from `offset` of a file on."""

    path: Path
    head: bytes
    offset: int
    samples_bytes: int

    @property
    def size(self) -> int:
        """The bytes of the whole."""
        return len(self.head) + self.samples_bytes


async def listen(asked: Asked) -> Response:
    """Answer with the audio, whole or the part that Range asks for."""
    readiness = await asked.doors.polls.look(asked.record_id, asked.account, with_text=False)
    audio_path = readiness.audio_path
    if audio_path is None:
        detail = "The recording is not decoded yet; ask again when it is at milestone converted."
        raise Problem(HTTPStatus.CONFLICT, "not_ready", detail)
    if readiness.store_id != asked.doors.store.id:
        detail = (
            "The audio lies in a store that this machine has not; ask the machine that took the recording."
        )
        raise Problem(HTTPStatus.CONFLICT, "elsewhere", detail)
    copy = await asked.doors.store.in_thread(_copy, asked.doors.store, audio_path)
    etag = f'"{audio_path.split("/")[2]}"'  # the folder of the attempt that decoded it: never written again
    headers = {
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Type": "audio/wav",
        "ETag": etag,
    }
    conditions = asked.request.headers
    if conditions.get("if-none-match", "").removeprefix("W/") == etag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    wanted = conditions.get("range") if conditions.get("if-range") in (None, etag) else None
    try:
        part = asked_part(wanted, copy.size)
    except NotSatisfiable:
        return _past_the_end(copy.size)
    headers["Content-Disposition"] = disposition(readiness, "wav").replace("attachment", "inline")
    return _Audio(copy, part, headers, asked.doors.store)


def _copy(store: Store, audio_path: str) -> Copy:
    path = store.path(audio_path)
    header = read_header(path)
    size = header.samples * header.sides * SAMPLE_BYTES
    return Copy(path=path, head=wav_head(size, header.sides), offset=header.data_offset, samples_bytes=size)


def wav_head(size: int, sides: int) -> bytes:
    """Return what stands before so many bytes of samples, of one side or of two, in a WAV."""
    whole, told = (size + _HEAD.size - 8, size) if size + _HEAD.size <= _MOST_TOLD else (_MOST_TOLD,) * 2
    step, bits = sides * SAMPLE_BYTES, 8 * SAMPLE_BYTES
    form = (b"fmt ", 16, _PCM, sides, RATE, RATE * step, step, bits)
    return _HEAD.pack(b"RIFF", whole, b"WAVE", *form, b"data", told)


def _past_the_end(size: int) -> Response:
    detail = f"The audio has {size} bytes; ask for a part of them."
    problem = Problem(
        HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
        "range_not_satisfiable",
        detail,
        headers={"Content-Range": f"bytes */{size}"},
    )
    return ProblemResponse(problem)


class _Audio(Response):
    """A copy, or a part of it, a block at a time."""

    def __init__(self, copy: Copy, part: Part | None, headers: dict[str, str], store: Store) -> None:
        status = HTTPStatus.OK if part is None else HTTPStatus.PARTIAL_CONTENT
        wanted = part or Part(0, copy.size)
        if part is not None:
            last = part.first + part.length - 1
            headers = {**headers, "Content-Range": f"bytes {part.first}-{last}/{copy.size}"}
        super().__init__(None, status, {**headers, "Content-Length": str(wanted.length)})
        self._copy = copy
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
        file = await self._store.in_thread(os.open, self._copy.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while left:
                block = await self._block(file, first, min(left, _BLOCK))
                await send({"type": "http.response.body", "body": block, "more_body": True})
                first, left = first + len(block), left - len(block)
        finally:
            os.close(file)

    async def _block(self, file: int, first: int, most: int) -> bytes:
        head = self._copy.head
        if first < len(head):
            return head[first : first + most]
        block = await self._store.in_thread(os.pread, file, most, self._copy.offset + first - len(head))
        if not block:
            raise DamagedCopy(f"{self._copy.path.name} has become shorter")
        return block


async def _end_with_sender(receive: Receive, sending: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    sending.cancel(reason="the sender has gone")


_WAV = (Content(media="audio/wav", shape={"type": "string", "format": "binary"}),)
_HEADERS = {"ETag": "Of the audio.", "Accept-Ranges": "`bytes`."}

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/records/{id}/audio",
        name="listen",
        says="The audio as it was decoded, as WAV; whole, or the part that Range asks for.",
        handler=listen,
        parameters=(
            Parameter(name="Range", place="header", says="One range of bytes.", schema={"type": "string"}),
            Parameter(
                name="If-Range",
                place="header",
                says="The ETag that the range is meant for; the whole comes if it is another.",
                schema={"type": "string"},
            ),
        ),
        answers={
            200: Answer(says="The whole.", contents=_WAV, headers=_HEADERS),
            206: Answer(
                says="The part.",
                contents=_WAV,
                headers={**_HEADERS, "Content-Range": "Which part of how much."},
            ),
            304: Answer(says="Nothing has changed."),
        },
        problems=(
            (404, "not_found"),
            (409, "not_ready"),
            (409, "elsewhere"),
            (416, "range_not_satisfiable"),
        ),
    ),
)

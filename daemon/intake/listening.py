"""`GET /v1/records/{id}/audio` and `/peaks`: what was decoded of a recording, to be heard and seen.

The recognition copy is given a WAV's head on the way out: that is there as soon as the recording is decoded.
Past 4 GiB, which is 37 hours, or 18 of a call, a WAV cannot tell its own length; players go by the length
of the answer. The listening copy, a tenth of it, follows when it is made.
"""

import errno
import os
import struct
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import numpy as np
from attrs import frozen
from starlette.responses import JSONResponse, Response

from daemon.intake.bytes_answer import Bytes, answer_bytes
from daemon.intake.conditions import none_match
from daemon.intake.operations import Answer, Asked, Content, Operation, json_answer
from daemon.intake.problems import Problem
from daemon.intake.queries import Parameter
from daemon.intake.transcripts import disposition
from stages.media.wave64 import RATE, SAMPLE_BYTES, read_header
from storage.audio import Store
from storage.listening import Listening, make_again, read_listening
from storage.readiness import Readiness

_MOST_TOLD = 2**32 - 1
_HEAD = struct.Struct("<4sI4s4sIHHIIHH4sI")
_PCM = 1
_ENDINGS = {"audio/mpeg": "mp3", "audio/mp4": "m4a"}
_DECODED, _LISTENING = "decoded", "listening"


@frozen(kw_only=True)
class ShownPeaks:
    """The outline of a recording, to be drawn."""

    seconds: Annotated[float, "How long the recording is; each pair stands for an equal part of it."]
    peaks: Annotated[
        tuple[int, ...], "Least and greatest of each part by turns, from -128 to 127; 4,000 pairs at most."
    ]


async def listen(asked: Asked) -> Response:
    """Answer with the audio, whole or the part that Range asks for."""
    readiness, audio_path = await _decoded(asked)
    store = asked.doors.store
    if asked.query.get("copy") == _LISTENING:
        content, media, etag = await _listening_copy(asked, readiness)
    else:
        content, media = await store.in_thread(_wav, store, audio_path), "audio/wav"
        etag = (
            f'"{audio_path.split("/")[2]}"'  # the folder of the attempt that decoded it: never written again
        )
    headers = {
        "Content-Type": media,
        "ETag": etag,
        "Content-Disposition": disposition(readiness, _ENDINGS.get(media, "wav")).replace(
            "attachment", "inline"
        ),
        "X-Content-Type-Options": "nosniff",
    }
    return answer_bytes(content, asked.request.headers, headers, store)


async def show_peaks(asked: Asked) -> Response:
    """Answer with the outline of the audio."""
    readiness, _ = await _decoded(asked)
    listening = await read_listening(asked.doors.database, readiness.id)
    if listening.peaks is None:
        raise _unmade(listening)
    etag = f'"{readiness.id}.peaks"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if not none_match(asked.request.headers.get("if-none-match"), etag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    peaks = np.frombuffer(listening.peaks, np.int8).tolist()
    return JSONResponse({"seconds": readiness.audio_seconds, "peaks": peaks}, headers=headers)


async def _decoded(asked: Asked) -> tuple[Readiness, str]:
    """Return a record that is decoded, in a store of ours, and where its recognition copy is."""
    readiness = await asked.doors.polls.look(asked.record_id, asked.account, with_text=False)
    if readiness.audio_path is None:
        detail = "The recording is not decoded yet; ask again when it is at milestone converted."
        raise Problem(HTTPStatus.CONFLICT, "not_ready", detail)
    if readiness.store_id != asked.doors.store.id:
        detail = (
            "The audio lies in a store that this machine has not; ask the machine that took the recording."
        )
        raise Problem(HTTPStatus.CONFLICT, "elsewhere", detail)
    return readiness, readiness.audio_path


async def _listening_copy(asked: Asked, readiness: Readiness) -> tuple[Bytes, str, str]:
    """Return the listening copy, what kind of media it is and its tag."""
    database, store = asked.doors.database, asked.doors.store
    listening = await read_listening(database, readiness.id)
    if listening.path is None or listening.media is None:
        raise _unmade(listening)
    path = store.path(listening.path)
    size = await store.in_thread(_size_of, path)
    if size is None:
        if Path(listening.path).parent.name == str(readiness.id):  # the source itself: not ours to make again
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        await make_again(database, readiness.id, listening.path)
        raise _unmade(listening)
    making = Path(listening.path).parent.name  # of a source that is its own copy: the record
    return Bytes(path=path, length=size), listening.media, f'"{making}.{_LISTENING}"'


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _unmade(listening: Listening) -> Problem:
    if listening.failed_because is not None:
        detail = "A listening copy could not be made of this recording; the audio as it was decoded is there."
        return Problem(HTTPStatus.CONFLICT, "no_listening_copy", detail)
    detail = "It is not made yet; ask again later. The audio as it was decoded is there."
    return Problem(HTTPStatus.CONFLICT, "not_ready", detail)


def _wav(store: Store, audio_path: str) -> Bytes:
    path = store.path(audio_path)
    header = read_header(path)
    size = header.samples * header.sides * SAMPLE_BYTES
    return Bytes(path=path, head=wav_head(size, header.sides), offset=header.data_offset, length=size)


def wav_head(size: int, sides: int) -> bytes:
    """Return what stands before so many bytes of samples, of one side or of two, in a WAV."""
    whole, told = (size + _HEAD.size - 8, size) if size + _HEAD.size <= _MOST_TOLD else (_MOST_TOLD,) * 2
    step, bits = sides * SAMPLE_BYTES, 8 * SAMPLE_BYTES
    form = (b"fmt ", 16, _PCM, sides, RATE, RATE * step, step, bits)
    return _HEAD.pack(b"RIFF", whole, b"WAVE", *form, b"data", told)


_AUDIO = tuple(
    Content(media=media, shape={"type": "string", "format": "binary"}) for media in ("audio/wav", *_ENDINGS)
)
_HEADERS = {"ETag": "Of the audio.", "Accept-Ranges": "`bytes`."}
_PROBLEMS = ((404, "not_found"), (409, "not_ready"), (409, "elsewhere"), (409, "no_listening_copy"))

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/records/{id}/audio",
        name="listen",
        says="The audio as it was decoded, as WAV, or a copy that is a tenth of it and plays everywhere; "
        "whole, or the part that Range asks for.",
        handler=listen,
        parameters=(
            Parameter(
                name="copy",
                says="Which: as it was `decoded`, unless said otherwise, or the `listening` copy, "
                "which is made a while later.",
                schema={"type": "string", "enum": [_DECODED, _LISTENING]},
            ),
            Parameter(name="Range", place="header", says="One range of bytes.", schema={"type": "string"}),
            Parameter(
                name="If-Range",
                place="header",
                says="The ETag that the range is meant for; the whole comes if it is another.",
                schema={"type": "string"},
            ),
        ),
        answers={
            200: Answer(says="The whole.", contents=_AUDIO, headers=_HEADERS),
            206: Answer(
                says="The part.",
                contents=_AUDIO,
                headers={**_HEADERS, "Content-Range": "Which part of how much."},
            ),
            304: Answer(says="Nothing has changed."),
        },
        problems=(*_PROBLEMS, (416, "range_not_satisfiable")),
    ),
    Operation(
        method="GET",
        path="/v1/records/{id}/peaks",
        name="showPeaks",
        says="The outline of the audio, to be drawn; made a while after it is decoded.",
        handler=show_peaks,
        answers={
            200: json_answer("The peaks.", ShownPeaks, {"ETag": "Of the peaks."}),
            304: Answer(says="Nothing has changed."),
        },
        problems=_PROBLEMS,
    ),
)

"""An HTTP server that can be told how to answer badly: late, slowly, in part, or not at all.

Whole requests in, whole replies out; a reply's `Manner` says what becomes of it on its way. Servers that keep
to the rules cannot be made to break them, so this one speaks through h11 itself.
"""

import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import h11
import trio
from attrs import field, frozen

LARGEST_BODY: Final = 128 * 2**20
CHUNK: Final = 64 * 1024
_RESET: Final = struct.pack("ii", 1, 0)  # linger for no time: the connection is reset


@frozen(kw_only=True)
class Request:
    """One request as it came; `headers` by lower-case name."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@frozen(kw_only=True)
class Manner:
    """How a reply goes out.

    `late` are the seconds before it begins, `rate` the bytes a second, `cut` the bytes of its body after
    which the connection ends. `closing`: its length is told by the end of the connection alone. `silent`: the
    connection ends without it. `endless`: nothing comes, and the connection stays.
    """

    late: float = 0.0
    rate: float | None = None
    cut: int | None = None
    closing: bool = False
    silent: bool = False
    endless: bool = False


PLAIN: Final = Manner()


@frozen(kw_only=True)
class Reply:
    """What is answered."""

    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)
    body: bytes = b""


Answer = Callable[[Request], Awaitable[tuple[Reply, Manner]]]


class _Over(Exception):
    """The conversation is over: by the other side's will, or by the manner of a reply."""


async def converse(stream: trio.abc.Stream, answer: Answer) -> None:
    """Answer the requests of one connection until either side ends it."""
    connection = h11.Connection(h11.SERVER)
    try:
        while True:
            request = await _hear(connection, stream)
            reply, manner = await answer(request)
            await _say(connection, stream, reply, manner)
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()
    except (_Over, trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
        return  # whatever became of it, this connection has no more to say
    finally:
        await trio.aclose_forcefully(stream)


async def _hear(connection: h11.Connection, stream: trio.abc.Stream) -> Request:
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                await stream.send_all(connection.send(go_on) or b"")
            connection.receive_data(bytes(await stream.receive_some(CHUNK)))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > LARGEST_BODY:
                raise _Over
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return _request(head, bytes(body))
        else:
            raise _Over


def _request(head: h11.Request, body: bytes) -> Request:
    target = urlsplit(head.target.decode("ascii"))
    return Request(
        method=head.method.decode("ascii"),
        path=unquote(target.path),
        query=dict(parse_qsl(target.query, keep_blank_values=True)),
        headers={name.decode("ascii"): value.decode("latin-1") for name, value in head.headers},
        body=body,
    )


async def _say(connection: h11.Connection, stream: trio.abc.Stream, reply: Reply, manner: Manner) -> None:
    await trio.sleep(manner.late)
    if manner.endless:
        await _wait_for_its_end(stream)
    if manner.silent:
        _reset(stream)
        raise _Over
    headers = dict(reply.headers)
    if manner.closing:
        headers["Connection"] = "close"
    else:
        headers["Content-Length"] = str(len(reply.body))
    head = h11.Response(status_code=reply.status, headers=list(headers.items()))
    body = reply.body if manner.cut is None else reply.body[: manner.cut]
    if manner.closing:
        # h11 would put the body into chunks, which have an end of their own.
        lines = [f"HTTP/1.1 {reply.status} Said", *(f"{name}: {value}" for name, value in headers.items())]
        await stream.send_all("\r\n".join([*lines, "", ""]).encode("latin-1"))
        await _pace(stream, body, manner)
        raise _Over
    await stream.send_all(connection.send(head) or b"")
    await _pace(stream, connection.send(h11.Data(data=body)) or b"", manner)
    if manner.cut is not None and manner.cut < len(reply.body):
        raise _Over
    await stream.send_all(connection.send(h11.EndOfMessage()) or b"")


async def _pace(stream: trio.abc.Stream, data: bytes, manner: Manner) -> None:
    if manner.rate is None:
        await stream.send_all(data)
        return
    step = max(1, round(manner.rate / 20))
    for start in range(0, len(data), step):
        await stream.send_all(data[start : start + step])
        await trio.sleep(step / manner.rate)


async def _wait_for_its_end(stream: trio.abc.Stream) -> None:
    while await stream.receive_some(CHUNK):
        pass
    raise _Over


def _reset(stream: trio.abc.Stream) -> None:
    """Have the other side see a broken connection, where that can be done."""
    if isinstance(stream, trio.SocketStream):
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

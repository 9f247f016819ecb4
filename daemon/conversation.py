"""One connection of the HTTP server: HTTP/1.1 by hypercorn's hands, and nothing else.

Hypercorn's own connection would also turn into HTTP/2 or a WebSocket when asked to, and sends under a shield:
a client that takes nothing could hold up the end of the service. None of that is wanted here.
"""

import math
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.events import Request, Response
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr

IDLE_SECONDS = 15.0  # until a request's headers are whole, and between two requests
SEE_OFF_SECONDS = 1.0  # until a client has read its last answer
SEND_SECONDS = 60.0  # until a client takes the next block of its answer
FIRST_WORD_SECONDS = 0.5  # when the server ends: for the request of somebody who has just connected
_BLOCK = 64 * 1024


class Conversation:
    """Serves one connection until it ends, by either side or by `end`."""

    def __init__(
        self, app: ASGIWrapper, config: Config, context: WorkerContext, stream: trio.SocketStream
    ) -> None:
        self._app = app
        self._config = config
        self._context = context
        self._stream = stream
        self._sending = trio.Lock()
        self._seen_off = False
        self._idle = self._new = True
        self._ending = False
        self._hearing = trio.CancelScope()
        self._until = trio.current_time() + IDLE_SECONDS

    async def run(self) -> None:
        """Answer one request after the other."""
        family = self._stream.socket.family
        client = parse_socket_addr(family, self._stream.socket.getpeername())
        server = parse_socket_addr(family, self._stream.socket.getsockname())
        async with self._stream, TaskGroup() as tasks:
            self._protocol = _Http1(
                self._app,
                self._config,
                self._context,
                tasks,
                ConnectionState({}),
                False,  # noqa: FBT003 - not TLS; hypercorn takes it by its place
                client,
                server,
                self._send,
            )
            await self._hear()

    def end(self) -> None:
        """End now if no request is being answered; the protocol ends it after the answer otherwise.

        Whoever has just connected is not turned away: the request is on its way, and nobody asks twice.
        """
        self._ending = True
        if self._idle:
            self._until = trio.current_time() + FIRST_WORD_SECONDS if self._new else -math.inf
            self._hearing.deadline = self._until

    async def _hear(self) -> None:
        while True:
            self._hearing = trio.CancelScope(deadline=self._until)
            data = bytearray()
            with self._hearing:
                try:
                    data += await self._stream.receive_some(_BLOCK)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    break
            if self._hearing.cancelled_caught:
                if self._seen_off or not (self._ending and self._stream.socket.is_readable()):
                    break
                self._until = trio.current_time() + FIRST_WORD_SECONDS  # it came in the last moment
                continue
            if not self._seen_off:
                await self._protocol.handle(RawData(bytes(data)))
            if not data:
                break
        await self._protocol.handle(Closed())

    async def _send(self, event: Event) -> None:
        match event:
            case RawData(data):
                if not await self._sent(data):
                    await self._protocol.handle(Closed())
            case Closed() if self._protocol.is_answering:
                pass  # over what came behind the request; the answer still ends as it should
            case Closed():
                await self._see_off()
                await self._protocol.handle(Closed())
            case Updated(idle) if not self._seen_off:
                self._idle, self._new = idle, False
                self._until = trio.current_time() + IDLE_SECONDS if idle else math.inf
                self._hearing.deadline = self._until
            case Updated():
                pass  # nothing comes after the end
            case _:
                raise TypeError(f"hypercorn has an event unknown to us: {event!r}")

    async def _see_off(self) -> None:
        """End our half, and drop what still comes for a moment.

        Were the connection closed with something unread, the kernel would take back what the client has not
        read of its answer.
        """
        self._seen_off = True
        self._until = trio.current_time() + SEE_OFF_SECONDS
        with trio.move_on_after(SEE_OFF_SECONDS) as limit:
            try:
                async with self._sending:
                    await self._stream.send_eof()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._until = -math.inf  # it is gone already
        if limit.cancelled_caught:  # it does not take what it was sent before
            await trio.aclose_forcefully(self._stream)
        self._hearing.deadline = self._until

    async def _sent(self, data: bytes) -> bool:
        """Send `data`; False when the client has gone, or does not take it."""
        async with self._sending:
            for start in range(0, len(data), _BLOCK):
                with trio.move_on_after(SEND_SECONDS) as limit:
                    try:
                        await self._stream.send_all(data[start : start + _BLOCK])
                    except (trio.BrokenResourceError, trio.ClosedResourceError):
                        return False
                if limit.cancelled_caught:
                    await trio.aclose_forcefully(self._stream)
                    return False
        return True


class _Http1(H11Protocol):
    """HTTP/1.1 that stays HTTP/1.1, whatever a client would like to upgrade to."""

    async def stream_send(self, event: StreamEvent) -> None:
        """Say with the last answer that it is the last: the next request goes to the next server."""
        last = (b"connection", b"close")
        if isinstance(event, Response) and self.context.terminated.is_set() and last not in event.headers:
            event.headers.append(last)
        await super().stream_send(event)

    @property
    def is_answering(self) -> bool:
        """Whether an answer has begun and not ended."""
        return self.stream is not None and str(self.connection.our_state) == "SEND_BODY"

    async def _check_protocol(self, event: Any) -> None:  # noqa: ANN401 - h11's, which hypercorn does not export
        """Offer no other protocol."""

    async def _create_stream(self, request: Any) -> None:  # noqa: ANN401 - the same
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode("ascii"),
                method=request.method.decode("ascii").upper(),
                raw_path=request.target,
                state=self.connection_state,
            )
        )
        self.keep_alive_requests += 1

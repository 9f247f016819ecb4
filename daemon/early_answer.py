"""An answer given before the request's body was read to its end.

The HTTP server would keep such a connection, waiting for a body nobody reads. Here the answer says
`Connection: close`, what the sender still has under way is read and dropped for a moment, so that it gets to
see the answer, and only then the connection is closed.
"""

import trio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LINGER_SECONDS = 2.0


class EarlyAnswers:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application and see its answer off."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _Request(scope, receive, send)
        await self._app(scope, request.receive, request.send)


class _Request:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._unread = _has_body(scope)

    async def receive(self) -> Message:
        """Pass on what comes, noting the body's end."""
        message = await self._receive()
        self._unread = self._unread and message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Pass on what goes; an early answer ends only after the sender had its moment to see it."""
        if not self._unread:
            await self._send(message)
        elif message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (b"connection", b"close")]
            await self._send({**message, "headers": headers})
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            with trio.move_on_after(LINGER_SECONDS):
                await self._drop_rest()
            # The server hands over the end of the connection like a part of the body, and waits for it to be
            # taken; with parts still queued that would be for ever.
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._drop_rest)
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
                nursery.cancel_scope.cancel()
        else:
            await self._send(message)

    async def _drop_rest(self) -> None:
        while (await self._receive()).get("more_body", False):
            pass


def _has_body(scope: Scope) -> bool:
    headers = {name.lower(): value for name, value in scope["headers"]}
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0").strip() not in (b"0", b"")

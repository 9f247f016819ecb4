"""Server-sent events: an answer that goes on until there is nothing more to say, or nobody to say it to."""

from collections.abc import Awaitable, Callable

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

LONGEST_SECONDS = 3600.0  # whoever wants more comes again
STREAM = "text/event-stream"
_COME_AGAIN = 2000  # milliseconds

Say = Callable[[str], Awaitable[None]]
"""Takes events as they are written, or a comment."""


class EventStream(Response):
    """What `talk` says, until it ends, the listener goes, or the hour is over."""

    def __init__(self, talk: Callable[[Say], Awaitable[None]]) -> None:
        """Be about to talk."""
        super().__init__(media_type=STREAM, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._talk = talk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what there is, and go on."""
        del scope

        async def say(words: str) -> None:
            await send({"type": "http.response.body", "body": words.encode(), "more_body": True})

        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(start)
        with trio.move_on_after(LONGEST_SECONDS) as lasting:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_end_with_listener, receive, lasting)
                await say(f"retry: {_COME_AGAIN}\n\n")
                await self._talk(say)
                nursery.cancel_scope.cancel(reason="there is nothing more to come")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _end_with_listener(receive: Receive, lasting: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    lasting.cancel(reason="the listener has gone")

"""A request's body as it arrives: counted, limited, and never waited for too long."""

from collections.abc import Callable
from http import HTTPStatus

import trio
from starlette.requests import ClientDisconnect, Request

from daemon.intake.problems import Problem, stopping
from daemon.last_call import LAST_CALL, LastCall

# The slowest sender that is served: this many bytes in so many seconds of waiting for it.
LEAST_BYTES = 4096
PATIENCE_SECONDS = 60.0


class Body:
    """`size` counts what was read; more than `most` bytes, declared or sent, are the problem of `excess`."""

    def __init__(self, request: Request, most: int, excess: Callable[[int], Problem] | None = None) -> None:
        self.size = 0
        self._receive = request.receive
        self._last_call: LastCall = request.scope.get(LAST_CALL) or LastCall()
        self._most = most
        self._excess = excess or too_large
        self._patience = PATIENCE_SECONDS
        self._due = LEAST_BYTES
        declared = declared_size(request)
        if declared is not None and declared > most:
            raise self._excess(most)

    async def read(self) -> bytes:
        """Return the next bytes, empty at the end; raises ClientDisconnect when the sender went away."""
        while True:
            chunk, more = await self._read_message()
            self.size += len(chunk)
            if self.size > self._most:
                raise self._excess(self._most)
            if self.size >= self._due:
                self._patience, self._due = PATIENCE_SECONDS, self.size + LEAST_BYTES
            if chunk or not more:
                return chunk

    async def _read_message(self) -> tuple[bytes, bool]:
        began = trio.current_time()
        with self._last_call.waiting() as last, trio.move_on_after(self._patience) as limit:
            message = await self._receive()
        if last.cancelled_caught:
            raise stopping("The service stopped before all of it had come; send it again in a moment.")
        if limit.cancelled_caught:
            raise Problem(
                HTTPStatus.REQUEST_TIMEOUT,
                "too_slow",
                f"Less than {LEAST_BYTES} bytes came within {PATIENCE_SECONDS:.0f} seconds; "
                "send the recording again over a better connection.",
            )
        self._patience -= trio.current_time() - began
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        return message.get("body", b""), message.get("more_body", False)


def declared_size(request: Request) -> int | None:
    """Return how many bytes the request says its body has; None for one that does not say it."""
    declared = request.headers.get("content-length", "")
    return int(declared) if declared.isascii() and declared.isdigit() else None


def too_large(most: int) -> Problem:
    """Say that the recording has more than `most` bytes."""
    detail = f"The recording is larger than the {most} bytes this service accepts; send a smaller file."
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", detail)


def empty_body() -> Problem:
    """Say that there is no recording in the request."""
    detail = "The request holds no recording; send the file's bytes as its body."
    return Problem(HTTPStatus.BAD_REQUEST, "empty_body", detail)

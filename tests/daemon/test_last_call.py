"""Bodies that still come when the real server ends."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from daemon import web
from daemon.intake.body import Body
from daemon.intake.problems import TOLD
from daemon.web import serve_web
from storage.ids import new_id
from tests.talking import answer_to

LAST_CALL = 0.3


@pytest.fixture
async def server(
    reachable: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Path, Callable[[], None]]]:
    """The socket of a server that counts the bytes it is sent, and what ends that server."""
    monkeypatch.setattr(web, "LAST_CALL_SECONDS", LAST_CALL)

    async def count(request: Request) -> Response:
        body = Body(request, most=10**12)
        while await body.read():
            pass
        return PlainTextResponse(f"{body.size} bytes")

    path, scope, ended = reachable / f"{new_id().hex[-12:]}.sock", trio.CancelScope(), trio.Event()
    app = Starlette(routes=[Route("/", count, methods=["POST"])], exception_handlers=TOLD)

    async def run(task_status: trio.TaskStatus[None]) -> None:
        with scope:
            async with trio.open_nursery() as inner:
                await inner.start(partial(serve_web, app, socket=path))
                task_status.started()
        ended.set()

    await nursery.start(run)
    yield path, scope.cancel
    with trio.fail_after(web.END_SECONDS + 2):
        await ended.wait()


async def begin(stream: trio.SocketStream, first: bytes) -> None:
    """Begin a body of ten bytes, or one that has no end."""
    framing = b"Content-Length: 10" if len(first) < 10 else b"Content-Length: 999999999999"
    await stream.send_all(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n" + first)
    await trio.sleep(0.1)  # by then the server waits for more


async def test_who_is_silent_when_the_service_ends_is_told_why(
    server: tuple[Path, Callable[[], None]],
) -> None:
    """And not just cut off: a program sees that the same request is worth another try."""
    path, end = server
    async with await trio.open_unix_socket(str(path)) as stream:
        await begin(stream, b"12345")
        end()
        with trio.fail_after(LAST_CALL + web.END_SECONDS):
            said = await answer_to(stream)
    assert said.startswith(b"HTTP/1.1 503")
    assert b'"code":"stopping"' in said
    assert b"retry-after: 10" in said.lower()
    assert said.lower().count(b"connection: close") == 1


async def test_who_goes_on_sending_when_the_service_ends_is_told_why(
    server: tuple[Path, Callable[[], None]],
) -> None:
    """Also where there was always something more to be read."""
    path, end = server
    async with await trio.open_unix_socket(str(path)) as stream, trio.open_nursery() as sending:
        await begin(stream, b"x" * 10_000)

        async def send_for_ever() -> None:
            while True:
                await stream.send_all(b"x" * 100_000)

        sending.start_soon(send_for_ever)
        end()
        with trio.fail_after(LAST_CALL + web.END_SECONDS):
            said = await stream.receive_some()
        sending.cancel_scope.cancel()
    assert said.startswith(b"HTTP/1.1 503")


async def test_what_comes_before_the_last_call_is_over_is_taken(
    server: tuple[Path, Callable[[], None]],
) -> None:
    """Nobody is sent away who needs but a moment."""
    path, end = server
    async with await trio.open_unix_socket(str(path)) as stream:
        await begin(stream, b"12345")
        end()
        await trio.sleep(LAST_CALL / 3)
        await stream.send_all(b"67890")
        with trio.fail_after(web.END_SECONDS):
            said = await answer_to(stream)
    assert said.startswith(b"HTTP/1.1 200")
    assert said.endswith(b"10 bytes")

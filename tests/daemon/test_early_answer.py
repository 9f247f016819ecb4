"""Answers given before the body was read, on the real server."""

from functools import partial
from pathlib import Path

import pytest
import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from daemon import early_answer
from daemon.web import serve_web
from storage.ids import new_id
from tests.talking import answer_to

LINGER = 0.6


@pytest.fixture
async def socket(reachable: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The socket of an application that reads no body on `/early`, and every body on `/late`."""
    monkeypatch.setattr(early_answer, "LINGER_SECONDS", LINGER)

    async def early(_: Request) -> Response:
        await trio.lowlevel.checkpoint()
        return PlainTextResponse("no", 403)

    async def late(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    routes = [Route("/early", early, methods=["POST", "GET"]), Route("/late", late, methods=["POST"])]
    path = reachable / f"{new_id().hex[-12:]}.sock"
    await nursery.start(partial(serve_web, Starlette(routes=routes), socket=path))
    return path


def head(path: str, *headers: str) -> bytes:
    """Return a request's head."""
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


@pytest.mark.parametrize("sent", [0, 10, 3_000_000])
@pytest.mark.parametrize("framing", ["Content-Length: 9000000", "Transfer-Encoding: chunked"])
async def test_a_sender_that_falls_silent_is_let_go(socket: Path, framing: str, sent: int) -> None:
    """Whatever it has sent by then, it has its answer at once, and its connection ends soon after."""
    with trio.fail_after(LINGER + 2):
        async with await trio.open_unix_socket(str(socket)) as stream:
            body = b"%x\r\n%s\r\n" % (sent, b"x" * sent) if "chunked" in framing and sent else b"x" * sent
            began = trio.current_time()
            await stream.send_all(head("/early", framing) + body)
            first = await stream.receive_some()
            assert trio.current_time() - began < LINGER / 2
            said = bytes(first) + await answer_to(stream)
    assert said.startswith(b"HTTP/1.1 403 ")
    assert said.lower().count(b"connection: close") == 1
    assert said.endswith(b"no")


async def test_a_body_that_was_read_keeps_the_connection(socket: Path) -> None:
    """Only an early answer costs the connection."""
    requests = [
        (head("/late", "Content-Length: 5") + b"abcde", b"5"),
        (head("/late", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\n\r\n", b"3"),
        (head("/early", "Content-Length: 0"), b"no"),
        (head("/early"), b"no"),
    ]
    async with await trio.open_unix_socket(str(socket)) as stream:
        for request, answer in 2 * requests:
            await stream.send_all(request)
            said = b""
            while not said.endswith(b"\r\n\r\n" + answer):
                said += await stream.receive_some()
            assert b"connection: close" not in said.lower()


async def test_a_sender_that_goes_on_for_ever_is_cut_off(socket: Path) -> None:
    """After its moment, although it never stops."""

    async def send_for_ever() -> None:
        async with await trio.open_unix_socket(str(socket)) as stream:
            await stream.send_all(head("/early", "Transfer-Encoding: chunked"))
            while True:
                await stream.send_all(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    with trio.fail_after(LINGER + 3), pytest.raises(trio.BrokenResourceError):
        await send_for_ever()

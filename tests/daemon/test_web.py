"""The HTTP server."""

import logging
import os
import socket as sockets
import stat
from functools import partial
from pathlib import Path

import httpx
import pytest
import structlog
import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from daemon import conversation, web
from daemon.web import serve_web
from storage.errors import Refused
from storage.ids import new_id
from tests.waiting import until


class App:
    """An application whose answers can be held back."""

    def __init__(self) -> None:
        self.asked = 0
        self.let_go = trio.Event()
        routes = [
            Route("/", self.answer),
            Route("/held", self.hold),
            Route("/endless", Endless(self)),
            Route("/broken", self.fail),
        ]
        self.app = Starlette(routes=routes)

    async def answer(self, _: Request) -> Response:
        """Answer at once."""
        await trio.lowlevel.checkpoint()
        return PlainTextResponse("here")

    async def hold(self, _: Request) -> Response:
        """Answer when let go."""
        self.asked += 1
        await self.let_go.wait()
        return PlainTextResponse("late")

    async def fail(self, _: Request) -> Response:
        """Have a bug."""
        await trio.lowlevel.checkpoint()
        raise RuntimeError("a bug")


class Endless:
    """An answer without an end, which counts its blocks and notices when its client has gone."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Answer until nobody is there."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, receive, nursery.cancel_scope)
            while True:
                self._app.asked += 1
                await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})

    async def _watch(self, receive: Receive, answering: trio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        answering.cancel()


@pytest.fixture
def path(reachable: Path) -> Path:
    """A place for a socket that other users may pass through."""
    return reachable / f"{new_id().hex[-12:]}.sock"


def client(path: Path) -> httpx.AsyncClient:
    """Return a client on the socket."""
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path)), base_url="http://x")


async def test_it_serves_from_the_moment_it_says_so(path: Path) -> None:
    """On a socket for its owner and group alone, and on TCP; when it ends, the file is gone."""
    async with trio.open_nursery() as nursery:
        named = await nursery.start(partial(serve_web, App().app, socket=path, listen="127.0.0.1:0"))
        assert stat.S_IMODE((await trio.Path(path).stat()).st_mode) == 0o660
        assert named[0] == str(path)
        async with client(path) as asking:
            assert (await asking.get("/")).text == "here"
        async with httpx.AsyncClient() as asking:
            assert (await asking.get(f"http://{named[1]}/")).text == "here"
        nursery.cancel_scope.cancel()
    assert not await trio.Path(path).exists()


async def test_a_dead_server_s_socket_is_replaced(path: Path) -> None:
    """A file that a killed process left is no obstacle."""
    with sockets.socket(sockets.AF_UNIX) as dead:
        dead.bind(str(path))
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve_web, App().app, socket=path))
        async with client(path) as asking:
            assert (await asking.get("/")).status_code == 200
        nursery.cancel_scope.cancel()


async def test_a_living_server_s_socket_is_left_alone(path: Path) -> None:
    """The second one is refused in a sentence, and the first goes on."""
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve_web, App().app, socket=path))
        with pytest.raises(Refused, match="another process listens"):
            await serve_web(App().app, socket=path)
        async with client(path) as asking:
            assert (await asking.get("/")).status_code == 200
        nursery.cancel_scope.cancel()


async def test_a_place_one_cannot_have_is_told(path: Path, tmp_path: Path) -> None:
    """A file, a missing folder, a path too long for a socket, an address in use: one sentence each."""
    letter = trio.Path(path)
    await letter.write_text("a letter")
    for place, words in (
        (path, "is a file and no socket"),
        (tmp_path / "missing" / "x.sock", "cannot listen on .*No such file"),
        (tmp_path / ("x" * 108), "too long for a socket"),
    ):
        with pytest.raises(Refused, match=words):
            await serve_web(App().app, socket=place)
    assert await letter.read_text() == "a letter"
    await letter.unlink()
    with sockets.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Refused, match=f"cannot listen on {listen} .*set intake.listen"):
            await serve_web(App().app, socket=path, listen=listen)
    assert not await letter.exists()


async def running(app: Starlette, path: Path, nursery: trio.Nursery) -> tuple[trio.CancelScope, trio.Event]:
    """Start a server; return what ends it, and what tells that it has ended."""
    scope, ended = trio.CancelScope(), trio.Event()

    async def run(task_status: trio.TaskStatus[None]) -> None:
        with scope:
            async with trio.open_nursery() as inner:
                await inner.start(partial(serve_web, app, socket=path))
                task_status.started()
        ended.set()

    await nursery.start(run)
    return scope, ended


async def test_an_answer_under_way_is_finished_when_the_server_ends(
    path: Path, nursery: trio.Nursery
) -> None:
    """Nothing new is taken, the idle are let go, and who was being answered gets the answer, as the last."""
    app, got = App(), []
    scope, ended = await running(app.app, path, nursery)

    async def ask() -> None:
        async with client(path) as asking:
            answer = await asking.get("/held")
            got.append((answer.text, answer.headers["connection"]))

    async with await trio.open_unix_socket(str(path)) as idle:
        nursery.start_soon(ask)
        await until(lambda: app.asked == 1)
        scope.cancel()
        with trio.fail_after(1):
            assert await idle.receive_some() == b""
        assert not ended.is_set()
        with pytest.raises(ConnectionRefusedError):
            await trio.open_unix_socket(str(path))
        app.let_go.set()
        await until(lambda: got == [("late", "close")])
        await until(ended.is_set, 1)


async def test_who_has_just_connected_when_the_server_ends_is_answered(
    path: Path, nursery: trio.Nursery
) -> None:
    """The request is on its way, or comes while the others are ended."""
    scope, ended = await running(App().app, path, nursery)
    async with (
        await trio.open_unix_socket(str(path)) as early,
        await trio.open_unix_socket(str(path)) as late,
    ):
        await trio.sleep(0.1)  # by then they are accepted
        os.write(early.socket.fileno(), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")  # and no turn for the server
        scope.cancel()
        await late.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with trio.fail_after(5):
            said = [b"".join([part async for part in stream]) for stream in (early, late)]
            await ended.wait()
    assert all(answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"here") for answer in said)


async def test_a_request_that_came_in_the_last_moment_is_answered(path: Path, nursery: trio.Nursery) -> None:
    """A connection that was idle is ended at once, unless the next request is there already."""
    scope, ended = await running(App().app, path, nursery)
    async with await trio.open_unix_socket(str(path)) as kept, await trio.open_unix_socket(str(path)) as idle:
        for stream in (kept, idle):
            await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
        await trio.sleep(0.1)
        os.write(kept.socket.fileno(), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")  # and no turn for the server
        scope.cancel()
        with trio.fail_after(5):
            said = b"".join([part async for part in kept])
            assert b"".join([part async for part in idle]).replace(b"here", b"") == b""
            await ended.wait()
    assert said.endswith(b"here")


@pytest.mark.parametrize("place", ["/held", "/endless"])
async def test_the_end_is_bounded(
    path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """An answer that never comes, or that its client never takes, holds the end up no longer than it may."""
    monkeypatch.setattr(web, "END_SECONDS", 0.3)
    app = App()
    scope, ended = await running(app.app, path, nursery)
    async with await trio.open_unix_socket(str(path)) as stream:
        await stream.send_all(f"GET {place} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await until(lambda: app.asked >= 1)
        await trio.sleep(0.1)  # by then the endless one waits for its client
        began = trio.current_time()
        scope.cancel()
        await until(ended.is_set, 3)
        assert trio.current_time() - began == pytest.approx(0.3, abs=0.3)


async def test_a_client_that_does_not_take_its_answer_is_dropped(
    path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block waits for its client so long and no longer; the server goes on."""
    monkeypatch.setattr(conversation, "SEND_SECONDS", 0.2)
    app = App()
    await nursery.start(partial(serve_web, app.app, socket=path))
    async with await trio.open_unix_socket(str(path)) as stream:
        await stream.send_all(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        await trio.sleep(1)
        before = app.asked
        await trio.sleep(0.5)
        assert app.asked == before
        with trio.fail_after(5):
            async for _ in stream:
                pass
    async with client(path) as asking:
        assert (await asking.get("/")).status_code == 200


async def test_headers_are_waited_for_only_so_long(
    path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that says nothing, or its headers a letter at a time, is closed."""
    monkeypatch.setattr(conversation, "IDLE_SECONDS", 0.3)
    await nursery.start(partial(serve_web, App().app, socket=path))
    for said in (b"", b"GET / HTTP/1.1\r\nHost: x\r\nX: "):
        async with await trio.open_unix_socket(str(path)) as stream:
            if said:
                await stream.send_all(said)
            with trio.fail_after(3):
                assert await stream.receive_some() == b""


MALFORMED = [
    b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
    b"GET / HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100,
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n" + b"\xff" * 100,
]


@pytest.mark.parametrize("request_", MALFORMED)
async def test_a_malformed_request_ends_its_connection_alone(
    path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, request_: bytes
) -> None:
    """Whatever bytes come, the server lives and serves the next one."""
    monkeypatch.setattr(conversation, "IDLE_SECONDS", 1.0)
    await nursery.start(partial(serve_web, App().app, socket=path))
    said = b""
    with trio.fail_after(8):
        async with await trio.open_unix_socket(str(path)) as stream:
            await stream.send_all(request_)
            try:
                async for part in stream:
                    said += part
            except trio.BrokenResourceError:
                said += b" (reset)"
    assert b"Traceback" not in said
    async with client(path) as asking:
        assert (await asking.get("/")).status_code == 200


async def test_more_connections_than_may_be_are_turned_away(
    path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are there go on, and a place that is left can be taken."""
    monkeypatch.setattr(web, "MOST_CONVERSATIONS", 2)
    await nursery.start(partial(serve_web, App().app, socket=path))
    async with await trio.open_unix_socket(str(path)), client(path) as asking:
        await asking.get("/")
        async with await trio.open_unix_socket(str(path)) as third:
            with trio.fail_after(3):
                assert await third.receive_some() == b""
        assert (await asking.get("/")).status_code == 200


async def test_an_error_is_logged_once_and_in_our_log(
    path: Path, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The server's own words come to our log and go nowhere else; requests are not logged."""
    await nursery.start(partial(serve_web, App().app, socket=path))
    with structlog.testing.capture_logs() as logged, caplog.at_level(logging.DEBUG, "hypercorn"):
        async with client(path) as asking:
            await asking.get("/")
            assert (await asking.get("/broken")).status_code == 500
            await asking.get("/")
    assert [(entry["event"], entry["log_level"]) for entry in logged] == [("request.failed", "warning")]
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")

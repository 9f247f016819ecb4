"""The sockets of the doors: those that systemd handed over, and those we make."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from daemon.listeners import inherited_doors, local_door, name_of, tcp_doors
from daemon.web import serve_web
from storage.errors import Refused
from storage.ids import new_id


async def _here(_: Request) -> PlainTextResponse:
    await trio.lowlevel.checkpoint()
    return PlainTextResponse("here")


APP = Starlette(routes=[Route("/", _here)])


@pytest.fixture
def folder(reachable: Path) -> Path:
    """A folder with a short name: sockets live in it."""
    made = reachable / new_id().hex[-8:]
    made.mkdir()
    return made


@contextmanager
def handed_over(path: Path) -> Iterator[list[socket.socket]]:
    """A Unix socket and a TCP one as systemd would hand them over, and keep them."""
    with socket.socket(socket.AF_UNIX) as local, socket.create_server(("127.0.0.1", 0)) as tcp:
        local.bind(str(path))
        local.listen(16)
        yield [local, tcp]


def ours(kept: list[socket.socket]) -> list[socket.socket]:
    """The same sockets under numbers of our own, as a process inherits them."""
    return [each.dup() for each in kept]


async def got(path: Path, tcp: socket.socket) -> list[str]:
    """Ask through the Unix socket at `path` and through TCP."""
    async with httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=str(path)), base_url="http://x"
    ) as asking:
        answers = [(await asking.get("/")).text]
    async with httpx.AsyncClient() as asking:
        answers.append((await asking.get(f"http://{name_of(tcp)}/")).text)
    return answers


async def test_inherited_sockets_are_served_and_outlive_the_server(folder: Path) -> None:
    """Both serve, and the door in the state folder leads to the first; and so for the next run."""
    behind, door = folder / "behind.sock", folder / "door.sock"
    with handed_over(behind) as kept:
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                serving = partial(serve_web, APP, socket=door, inherited=ours(kept))
                assert await nursery.start(serving) == [str(behind), name_of(kept[1])]
                assert door.readlink() == behind
                assert await got(door, kept[1]) == ["here", "here"]
                nursery.cancel_scope.cancel()
            assert behind.exists()


async def test_who_connects_between_two_servers_is_answered_by_the_second(folder: Path) -> None:
    """The connection waits in the socket that nobody accepts from for a while."""
    behind, door = folder / "behind.sock", folder / "door.sock"
    with handed_over(behind) as kept:
        async with await trio.open_unix_socket(str(behind)) as early:
            await early.send_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(serve_web, APP, socket=door, inherited=ours(kept)))
                said = b"".join([part async for part in early])
                nursery.cancel_scope.cancel()
    assert said.endswith(b"here")


async def test_a_door_of_our_own_takes_the_place_of_a_link(folder: Path) -> None:
    """A service that is no longer started by systemd makes its socket where the link was."""
    behind, door = folder / "behind.sock", folder / "door.sock"
    with handed_over(behind) as kept, local_door(door, kept) as made:
        assert made == []
        assert door.is_symlink()
    with local_door(door, []) as made:
        assert not door.is_symlink()
        assert [name_of(each.socket) for each in made] == [str(door)]
        made[0].socket.close()
    assert not door.exists()


def test_a_door_that_is_the_inherited_socket_is_left_as_it_is(folder: Path) -> None:
    """`intake.socket` may name the very path that systemd listens on."""
    behind = folder / "behind.sock"
    with handed_over(behind) as kept, local_door(behind, kept) as made:
        assert made == []
        assert behind.is_socket()
        assert not behind.is_symlink()


def test_a_link_is_no_reason_to_remove_what_is_not_ours(folder: Path) -> None:
    """Where a file lies in the way of the link, it stays, and the start is refused."""
    behind, door = folder / "behind.sock", folder / "door.sock"
    door.write_text("a letter")
    with handed_over(behind) as kept:
        for place, words in (
            (door, "is a file and no socket"),
            (folder / "missing" / "x", r"cannot listen on .*No such"),
        ):
            with pytest.raises(Refused, match=words), local_door(place, kept):
                pass
    assert door.read_text() == "a letter"


@pytest.mark.parametrize("kind", ["datagrams", "a connection", "not listening"])
def test_only_listening_streams_can_be_served(kind: str) -> None:
    """Anything else in rubezh.socket is told, and by what name it was found."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    odd = {
        "datagrams": socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        "a connection": one,
        "not listening": socket.socket(socket.AF_INET),
    }
    try:
        with pytest.raises(Refused, match=r"does not listen for streams .*ListenStream="):
            inherited_doors([odd[kind]])
    finally:
        for each in (other, *odd.values()):
            each.close()


def test_an_abstract_socket_has_a_name_to_read() -> None:
    """As systemd writes it, with an at sign."""
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0rubezh-{os.getpid()}")
        assert name_of(abstract) == f"@rubezh-{os.getpid()}"


async def test_where_no_network_is_allowed_the_remedy_is_the_socket_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Inside the unit the kernel knows no TCP; another address would not help."""

    async def refuse(*_: object, **__: object) -> list[trio.SocketListener]:
        await trio.lowlevel.checkpoint()
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))

    monkeypatch.setattr(trio, "open_tcp_listeners", refuse)
    with pytest.raises(Refused, match=r"have the address in rubezh\.socket, as ListenStream="):
        await tcp_doors("127.0.0.1:8080")
    assert await tcp_doors("") == []

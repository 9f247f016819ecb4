"""A knock at the socket tells whether PostgreSQL would serve us, and takes nothing else for a yes."""

import struct
from pathlib import Path

import pytest
import trio

from storage.handshake import Answer, KnockRefused, knock, understood


def message(kind: bytes, body: bytes) -> bytes:
    """Return one message of the protocol."""
    return kind + struct.pack("!i", 4 + len(body)) + body


def refusal(code: bytes, words: bytes) -> bytes:
    """Return an error message of the protocol."""
    return message(b"E", b"SFATAL\0VFATAL\0C" + code + b"\0M" + words + b"\0\0")


async def knocked_at(path: Path, *answers: bytes, seconds: float = 5.0) -> Answer:
    """Knock at a door that gives these answers piece by piece, then says no more."""
    listener = trio.socket.socket(trio.socket.AF_UNIX)
    await listener.bind(str(path))
    listener.listen()

    async def door() -> None:
        caller, _ = await listener.accept()
        with caller:
            await caller.recv(1000)
            for answer in answers:
                await caller.send(answer)
            await trio.sleep_forever()

    with listener:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(door)
            heard = await knock(path, user="rubezh", database="rubezh", seconds=seconds)
            nursery.cancel_scope.cancel()
    return heard


def test_busy_is_alive_and_starting_is_not_yet() -> None:
    """The server's own codes tell a server that is full from one that is not up."""
    assert understood(message(b"R", struct.pack("!i", 0))) is Answer.READY
    assert understood(refusal(b"53300", b"too many clients already")) is Answer.READY
    assert understood(refusal(b"57P03", b"the database system is starting up")) is Answer.NOT_YET


def test_a_no_carries_the_servers_words() -> None:
    """Any other refusal is told, with its code."""
    with pytest.raises(KnockRefused, match=r'database "rubezh" does not exist \(3D000\)'):
        understood(refusal(b"3D000", b'database "rubezh" does not exist'))
    with pytest.raises(KnockRefused, match="no PostgreSQL answers there"):
        understood(message(b"H", b"TTP/1.1 400"))


async def test_an_answer_in_pieces_is_put_together(tmp_path: Path) -> None:
    """A message may arrive byte by byte."""
    whole = message(b"R", struct.pack("!i", 0))
    assert await knocked_at(tmp_path / "s", *(whole[n : n + 1] for n in range(len(whole)))) is Answer.READY


async def test_a_door_that_keeps_silent_is_not_waited_at_for_ever(tmp_path: Path) -> None:
    """A knock has a deadline."""
    assert await knocked_at(tmp_path / "s", b"R", seconds=0.1) is Answer.NOT_YET


async def test_an_endless_answer_is_not_listened_to(tmp_path: Path) -> None:
    """A length no server of ours would send is not believed."""
    endless = b"E" + struct.pack("!i", 2**31 - 1) + b"x" * 50_000
    assert await knocked_at(tmp_path / "s", endless) is Answer.NOBODY


async def test_no_door_is_nobody(tmp_path: Path) -> None:
    """Neither a missing socket nor a path too long for one is an error."""
    assert await knock(tmp_path / "none", user="rubezh", database="rubezh") is Answer.NOBODY
    assert await knock(tmp_path / ("x" * 200), user="rubezh", database="rubezh") is Answer.NOBODY

"""Knock at a PostgreSQL socket: the first message of its protocol tells whether it would serve us."""

import struct
from enum import Enum, auto
from pathlib import Path

import trio

_PROTOCOL_3_0 = 3 << 16
_CANNOT_CONNECT_NOW = "57P03"  # starting up, recovering or shutting down
_TOO_MANY_CONNECTIONS = "53300"  # busy, and so quite alive
_HEAD = 5  # bytes: the kind of a message and its length
_LONGEST_ANSWER = 16 * 1024


class Answer(Enum):
    """What came back."""

    READY = auto()
    NOT_YET = auto()
    NOBODY = auto()


class KnockRefused(Exception):
    """The server is up and will not have us: its own words."""


async def knock(socket: Path, *, user: str, database: str, seconds: float = 5.0) -> Answer:
    """Ask to be let in as `user` to `database`, and leave again.

    Raises `KnockRefused` when the server is up and says no.
    """
    with trio.move_on_after(seconds):
        try:
            async with await trio.open_unix_socket(socket) as stream:
                return await _ask(stream, user, database)
        except (OSError, trio.BrokenResourceError):
            return Answer.NOBODY
    return Answer.NOT_YET


async def _ask(stream: trio.SocketStream, user: str, database: str) -> Answer:
    words = f"user\0{user}\0database\0{database}\0\0".encode()
    await stream.send_all(struct.pack("!ii", 8 + len(words), _PROTOCOL_3_0) + words)
    heard = b""
    while len(heard) < _HEAD or len(heard) < 1 + struct.unpack_from("!i", heard, 1)[0]:
        more = await stream.receive_some(4096)
        if not more or len(heard) > _LONGEST_ANSWER:
            return Answer.NOBODY
        heard += more
    return understood(heard)


def understood(heard: bytes) -> Answer:
    """Read the server's first message: let in, not now, or no (raises `KnockRefused`)."""
    kind, length = heard[:1], struct.unpack_from("!i", heard, 1)[0]
    if kind == b"R":
        return Answer.READY
    parts = heard[_HEAD : 1 + length].split(b"\0")
    fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in parts}
    code = fields.get(b"C")
    if code == _CANNOT_CONNECT_NOW:
        return Answer.NOT_YET
    if code == _TOO_MANY_CONNECTIONS:
        return Answer.READY
    raise KnockRefused(f"{fields.get(b'M', 'no PostgreSQL answers there')} ({code})")

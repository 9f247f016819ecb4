"""A wire between a program and PostgreSQL, which fails where a test wants it: at a word, or at any message.

It knows where one message of the protocol ends and the next begins, and nothing else of what it carries.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from enum import Enum, auto
from functools import partial

import psycopg
import trio
from attrs import define, field, frozen

_LENGTH = 4  # bytes, which count themselves
_READY = b"Z"  # the server has done what it was asked


class Towards(Enum):
    """Which way a message goes."""

    SERVER = auto()
    PROGRAM = auto()


class Failing(Enum):
    """What becomes of the message at which a wire fails."""

    CUT = auto()  # it does not arrive, and both sides see the connection broken
    SWALLOW = auto()  # neither it nor what follows arrives, not even the end, until the server looks for us
    DELAY = auto()  # it arrives late, as does everything on every connection


@frozen
class Fault:
    """A wire fails at message `number` (from 0) of those that go `towards` one side."""

    failing: Failing
    towards: Towards
    number: int


@frozen
class WordCut:
    """Cuts a connection at the program's message that holds `word`, before or after it was carried out."""

    word: bytes
    carried_out: bool


@define
class Wire:
    """Carries messages both ways; `dsn` leads through it. While it is `away` nobody gets a connection."""

    dsn: str
    socket: str
    nursery: trio.Nursery
    away: bool = False
    cuts: list[WordCut] = field(factory=list)
    passed: Counter[Towards] = field(factory=Counter)
    struck: bool = False
    _fault: Fault | None = None
    _late_seconds: float = 0.0
    _alive: trio.Event = field(factory=trio.Event)

    def cut_before(self, word: bytes) -> None:
        """Let the next message of the program that holds `word` never arrive."""
        self.cuts.append(WordCut(word, carried_out=False))

    def cut_after(self, word: bytes) -> None:
        """Let it arrive and be carried out, and the answer be lost."""
        self.cuts.append(WordCut(word, carried_out=True))

    def freeze(self) -> None:
        """Let nothing through any more, with every connection open."""
        self._alive = trio.Event()

    def thaw(self) -> None:
        """Let everything through again."""
        self._alive.set()

    def fail_at(self, fault: Fault | None, late_seconds: float = 0.0) -> None:
        """Count messages from now on and fail once, at that one (None: only count)."""
        self._fault, self._late_seconds = fault, late_seconds
        self.struck = False
        self.passed.clear()

    async def carry(self, program: trio.SocketStream) -> None:
        """Carry one connection until either side ends it, or a cut."""
        async with program:
            if self.away:
                return
            async with await trio.open_unix_socket(self.socket) as server, trio.open_nursery() as both:
                line = _Line(
                    program=program, server=server, cut=partial(both.cancel_scope.cancel, reason="cut")
                )
                both.start_soon(self._answer, line)
                await self._ask(line)

    async def _ask(self, line: "_Line") -> None:
        coming = _Messages(line.program, framed=False)
        while messages := await coming.more():
            for message in messages:
                await self._alive.wait()
                if self.cuts and self.cuts[0].word in message:
                    if not self.cuts.pop(0).carried_out:
                        line.cut()
                        return
                    line.condemned = True
                await self._count(line, Towards.SERVER)
                if line.deaf is not Towards.SERVER:
                    await _send(line.server, message)
        if line.deaf is not Towards.SERVER:
            await _end(line.server)

    async def _answer(self, line: "_Line") -> None:
        coming = _Messages(line.server, framed=True)
        while messages := await coming.more():
            for message in messages:
                await self._alive.wait()
                if line.condemned and message.startswith(_READY):
                    line.cut()
                if line.condemned:
                    continue
                await self._count(line, Towards.PROGRAM)
                if line.deaf is not Towards.PROGRAM:
                    await _send(line.program, message)
        if line.deaf is None:
            line.cut()

    async def _count(self, line: "_Line", towards: Towards) -> None:
        """Count a message, and fail at it if that is asked for."""
        number = self.passed[towards]
        self.passed[towards] += 1
        if self._fault is None or (self._fault.towards, self._fault.number) != (towards, number):
            return
        failing, self._fault, self.struck = self._fault.failing, None, True
        match failing:
            case Failing.CUT:
                line.cut()
                await trio.lowlevel.checkpoint()
            case Failing.DELAY:
                self.freeze()
                self.nursery.start_soon(self._thaw_later)
                await self._alive.wait()
            case Failing.SWALLOW:
                line.deaf = towards
                self.nursery.start_soon(self._close_later, line.server)

    async def _close_later(self, server: trio.SocketStream) -> None:
        """End the server's side as its keepalive would."""
        await trio.sleep(self._late_seconds)
        await server.aclose()

    async def _thaw_later(self) -> None:
        await trio.sleep(self._late_seconds)
        self.thaw()


@define
class _Line:
    """One connection: `condemned` to be cut when the server has done its work, `deaf` on one side."""

    program: trio.SocketStream
    server: trio.SocketStream
    cut: Callable[[], None]
    condemned: bool = False
    deaf: Towards | None = None


@define
class _Messages:
    """Splits what comes from one side; the first message of a program bears no letter (`framed` False)."""

    stream: trio.SocketStream
    framed: bool
    _held: bytearray = field(factory=bytearray)

    async def more(self) -> list[bytes]:
        """Return the next whole messages; none at the end."""
        while data := await _received(self.stream):
            self._held += data
            if whole := list(self._whole()):
                return whole
        return []

    def _whole(self) -> Iterator[bytes]:
        while True:
            begin = 1 if self.framed else 0
            head = self._held[begin : begin + _LENGTH]
            end = begin + int.from_bytes(head, "big")
            if len(head) < _LENGTH or len(self._held) < end:
                return
            message = bytes(self._held[:end])
            del self._held[:end]
            self.framed = True
            yield message


async def _received(stream: trio.SocketStream) -> bytes:
    try:
        return bytes(await stream.receive_some())
    except (trio.BrokenResourceError, trio.ClosedResourceError):  # ended without a word
        return b""


async def _send(stream: trio.SocketStream, message: bytes) -> None:
    try:
        await stream.send_all(message)
    except (
        trio.BrokenResourceError,
        trio.ClosedResourceError,
    ):  # nobody listens there any more: that side's own end tells
        await trio.lowlevel.checkpoint()


async def _end(stream: trio.SocketStream) -> None:
    try:
        await stream.send_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):  # it is gone already
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def open_wire(dsn: str) -> AsyncIterator[Wire]:
    """Lay a wire to the server of `dsn`, which is reached by a socket of the file system."""
    given = psycopg.conninfo.conninfo_to_dict(dsn)
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    through = psycopg.conninfo.make_conninfo(
        dsn, host="127.0.0.1", port=listener.socket.getsockname()[1], sslmode="disable", gssencmode="disable"
    )
    socket = f"{given['host']}/.s.PGSQL.{given.get('port') or 5432}"
    async with trio.open_nursery() as nursery:
        wire = Wire(dsn=through, socket=socket, nursery=nursery)
        wire.thaw()
        nursery.start_soon(trio.serve_listeners, wire.carry, [listener])
        yield wire
        nursery.cancel_scope.cancel(reason="the test is over")

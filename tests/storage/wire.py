"""A wire between a program and PostgreSQL that is cut at the worst moment, or goes dead."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import psycopg
import trio
from attrs import define, field

READY = b"Z\0\0\0\x05I"  # the server has done what it was asked, and no transaction is open


class Cut(NamedTuple):
    """Where to cut: at the first words that hold `word`, before or after they were carried out."""

    word: bytes
    carried_out: bool


@define
class Wire:
    """Carries bytes both ways; `dsn` leads through it. A cut happens once."""

    dsn: str
    socket: str
    cut: Cut | None = None
    alive: trio.Event = field(factory=trio.Event)

    def cut_before(self, word: bytes) -> None:
        """Let the next words of the program that hold `word` never arrive."""
        self.cut = Cut(word, carried_out=False)

    def cut_after(self, word: bytes) -> None:
        """Let them arrive and be carried out, and the answer be lost."""
        self.cut = Cut(word, carried_out=True)

    def freeze(self) -> None:
        """Let nothing through any more, with every connection open."""
        self.alive = trio.Event()

    async def carry(self, program: trio.SocketStream) -> None:
        """Carry one connection until either side ends it, or the cut."""
        async with (
            program,
            await trio.open_unix_socket(self.socket) as server,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._answer, server, program, nursery.cancel_scope)
            async for words in program:
                await self.alive.wait()
                if self.cut is None or self.cut.word not in words:
                    await server.send_all(words)
                    continue
                cut, self.cut = self.cut, None
                nursery.cancel_scope.cancel()
                if cut.carried_out:
                    with trio.CancelScope(shield=True), trio.fail_after(5):
                        await server.send_all(words)
                        await _carried_out(server)
            nursery.cancel_scope.cancel()

    async def _answer(
        self, server: trio.SocketStream, program: trio.SocketStream, ended: trio.CancelScope
    ) -> None:
        async for words in server:
            await self.alive.wait()
            await program.send_all(words)
        ended.cancel()


async def _carried_out(server: trio.SocketStream) -> None:
    answered = b""
    while READY not in answered:
        answered += await server.receive_some()


@asynccontextmanager
async def open_wire(dsn: str) -> AsyncIterator[Wire]:
    """Lay a wire to the server of `dsn`, which is reached by a socket of the file system."""
    given = psycopg.conninfo.conninfo_to_dict(dsn)
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    through = psycopg.conninfo.make_conninfo(
        dsn, host="127.0.0.1", port=listener.socket.getsockname()[1], sslmode="disable", gssencmode="disable"
    )
    wire = Wire(dsn=through, socket=f"{given['host']}/.s.PGSQL.{given.get('port') or 5432}")
    wire.alive.set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, wire.carry, [listener])
        yield wire
        nursery.cancel_scope.cancel()

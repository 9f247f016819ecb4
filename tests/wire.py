"""A wire to PostgreSQL that can be cut at a chosen moment: between a statement and its answer, or before it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum, auto
from pathlib import Path

import psycopg
import trio

_MOST = 2**16


class Cut(Enum):
    """Where the next statement of a connection is cut off."""

    BEFORE = auto()  # the server never gets it
    AFTER = auto()  # the server carries it out, and its answer is lost


class Wire:
    """Passes everything on until it is told to `cut`; `away` refuses every new connection."""

    def __init__(self, dsn: str, server: str, folder: Path) -> None:
        self.dsn = psycopg.conninfo.make_conninfo(dsn, host=str(folder), port=5432)
        self.away = False
        self.cuts: list[Cut] = []
        self._server = server

    def cut(self, *cuts: Cut) -> None:
        """Cut the next statements, one each."""
        self.cuts += cuts

    async def carry(self, client: trio.SocketStream) -> None:
        """Carry one connection."""
        async with client:
            if self.away:
                return
            async with await trio.open_unix_socket(self._server) as server, trio.open_nursery() as nursery:
                nursery.start_soon(self._forth, client, server, nursery.cancel_scope)
                nursery.start_soon(self._back, client, server, nursery.cancel_scope)

    async def _forth(
        self, client: trio.SocketStream, server: trio.SocketStream, both: trio.CancelScope
    ) -> None:
        while data := await _taken(client):
            if self.cuts and self.cuts[0] is Cut.BEFORE:
                self.cuts.pop(0)
                break
            await server.send_all(data)
        both.cancel()

    async def _back(
        self, client: trio.SocketStream, server: trio.SocketStream, both: trio.CancelScope
    ) -> None:
        while data := await _taken(server):
            if self.cuts and self.cuts[0] is Cut.AFTER:
                self.cuts.pop(0)
                break
            await client.send_all(data)
        both.cancel()


async def _taken(stream: trio.SocketStream) -> bytes:
    try:
        return bytes(await stream.receive_some(_MOST))
    except trio.BrokenResourceError:
        return b""


@asynccontextmanager
async def a_wire(dsn: str, folder: Path) -> AsyncIterator[Wire]:
    """Lay a wire to the server of `dsn`, which must listen on a unix socket; its own end lies in `folder`."""
    given = psycopg.conninfo.conninfo_to_dict(dsn)
    server = f"{given['host']}/.s.PGSQL.{given.get('port') or 5432}"
    wire = Wire(dsn, server, folder)
    with trio.socket.socket(trio.socket.AF_UNIX) as listening:
        await listening.bind(f"{folder}/.s.PGSQL.5432")
        listening.listen(64)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, wire.carry, [trio.SocketListener(listening)])
            yield wire
            nursery.cancel_scope.cancel()

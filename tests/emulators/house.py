"""Where an emulator lives: the port of the service, which can be taken away, and the port for tests."""

import json
import ssl
from collections.abc import Mapping
from functools import partial
from typing import Any

import trio
from attrs import define, field

from tests.emulators.emulator import Emulator, Hold, Quota, as_json
from tests.emulators.faults import fault_from_json
from tests.emulators.serving import PLAIN, Manner, Reply, Request, converse

_HOST = "127.0.0.1"


@define
class House:
    """One emulator and its two ports."""

    emulator: Emulator
    tls: ssl.SSLContext | None = None
    port: int = 0
    _open: trio.CancelScope | None = field(default=None, init=False)
    _closed: trio.Event = field(factory=trio.Event, init=False)

    async def open(self, nursery: trio.Nursery) -> None:
        """Have the service reachable, on the port it had before."""
        listeners = await trio.open_tcp_listeners(self.port, host=_HOST)
        self.port = listeners[0].socket.getsockname()[1]
        self._open, self._closed = trio.CancelScope(), trio.Event()
        nursery.start_soon(self._serve, listeners)

    async def close(self) -> None:
        """Take the service away: nobody listens, and every connection is gone."""
        if self._open is not None:
            self._open.cancel()
            await self._closed.wait()

    async def _serve(self, listeners: list[trio.SocketListener]) -> None:
        assert self._open is not None
        try:
            with self._open:
                await trio.serve_listeners(self._converse, listeners)
        finally:
            self._closed.set()

    async def _converse(self, stream: trio.SocketStream) -> None:
        if self.tls is None:
            await converse(stream, self.emulator.answer)
            return
        secure = trio.SSLStream(stream, self.tls, server_side=True, https_compatible=True)
        try:
            await secure.do_handshake()
        except (trio.BrokenResourceError, ssl.SSLError):
            await trio.aclose_forcefully(stream)  # whoever does not trust us goes away: so it should be
            return
        await converse(secure, self.emulator.answer)

    async def control(self, nursery: trio.Nursery, request: Request) -> tuple[Reply, Manner]:
        """Do what a test asks."""
        body = json.loads(request.body or b"{}")
        return as_json(await self._do(nursery, request.path.strip("/"), body)), PLAIN

    async def _do(self, nursery: trio.Nursery, deed: str, body: Mapping[str, Any]) -> object:
        match deed:
            case "down":
                await self.close()
            case "up":
                await self.open(nursery)
            case _:
                return do(self.emulator, deed, body)
        return {}


def do(emulator: Emulator, deed: str, body: Mapping[str, Any]) -> object:
    """Do what a test asks of the emulator itself."""
    match deed:
        case "calls":
            return emulator.ledger.as_json()
        case "fault":
            emulator.faults.add(fault_from_json(body))
        case "heal":
            emulator.faults.clear()
        case "change":
            emulator.service.change(body)
        case "quota":
            emulator.quotas[body["operation"]] = Quota(most=body["most"], seconds=body["seconds"])
            emulator.retry_after = body["retry_after"]
        case "hold":
            emulator.holds.append(Hold(**body))
        case "held":
            return [hold.reached for hold in emulator.holds]
        case "release":
            emulator.let_go(lost=body["lost"])
        case _:
            raise ValueError(deed)
    return {}


async def live(emulator: Emulator, tls: ssl.SSLContext | None) -> None:
    """Serve until our stdin ends: whoever started us is gone then."""
    house = House(emulator, tls)
    async with trio.open_nursery() as nursery:
        await house.open(nursery)
        control = await trio.open_tcp_listeners(0, host=_HOST)
        answer = partial(house.control, nursery)
        nursery.start_soon(trio.serve_listeners, partial(converse, answer=answer), control)
        ports = {"port": house.port, "control": control[0].socket.getsockname()[1]}
        async with trio.lowlevel.FdStream(1) as out:
            await out.send_all(json.dumps(ports).encode() + b"\n")
        async with trio.lowlevel.FdStream(0) as stdin:
            while await stdin.receive_some(1):
                pass
        nursery.cancel_scope.cancel()

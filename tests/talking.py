"""What tests say to a server, and hear from it, byte for byte and part by part."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
import trio
from attrs import define


async def answer_to(stream: trio.SocketStream) -> bytes:
    """Return all the server says until it closes."""
    said = b""
    try:
        async for part in stream:
            said += part
    except trio.BrokenResourceError:
        assert said
    return said


@define
class Heard:
    """What a stream said so far; `over` once it has ended."""

    said: str = ""
    over: bool = False


@asynccontextmanager
async def hearing(
    client: httpx.AsyncClient, path: str, heard: Heard, headers: Mapping[str, str] | None = None
) -> AsyncIterator[None]:
    """Listen to a stream of events during the block."""

    async def listen() -> None:
        async with client.stream("GET", path, headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            async for part in answer.aiter_text():
                heard.said += part
        heard.over = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        yield
        nursery.cancel_scope.cancel()

"""Many senders that crawl: `python -m tests.acceptance.slow_senders SOCKET TOKEN COUNT`, until killed.

Each sends a kilobyte every quarter of a second; "ready" is said once all of them are being received.
"""

import sys

import trio

CHUNK = b"400\r\n" + b"x" * 0x400 + b"\r\n"
PAUSE = 0.25


async def _send(socket: str, token: str, begun: trio.abc.SendChannel[None]) -> None:
    head = (
        f"POST /v1/records HTTP/1.1\r\nHost: rubezh\r\nAuthorization: Bearer {token}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    async with await trio.open_unix_socket(socket) as stream:
        await stream.send_all(head.encode())
        for number in range(10**6):
            await stream.send_all(CHUNK)
            if number == 1:
                await begun.send(None)
            await trio.sleep(PAUSE)


async def _send_all(socket: str, token: str, count: int) -> None:
    said, begun = trio.open_memory_channel[None](count)
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(_send, socket, token, said)
            await trio.sleep(0.005)
        for _ in range(count):
            await begun.receive()
        sys.stdout.write("ready\n")
        sys.stdout.flush()


if __name__ == "__main__":
    trio.run(_send_all, sys.argv[1], sys.argv[2], int(sys.argv[3]))

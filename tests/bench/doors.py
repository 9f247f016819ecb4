"""Polls and submissions a second, beside bare routes of the same server in the same process.

The sides take turns, each with the same clients over the same socket; a bare route answers the same bytes as
a poll does, or reads what a submission sends and drops it. A second one of those keeps it on the disk
for good, which tells apart what the disk costs from what we do.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import trio
from attrs import frozen

from tests.bench.server import migrated, postgres
from tests.bench.table import load, show

CLIENTS = (1, 16)
SECONDS = 3.0
_MEGABYTE = 2**20
_BLOCK = 2**16


@frozen(kw_only=True)
class Side:
    """A request that is sent again and again, and the status it is to be answered with."""

    request: bytes
    status: int


def run(rounds: int) -> None:
    """Measure and print."""
    with postgres() as dsn, tempfile.TemporaryDirectory(prefix="rz-") as name:
        migrated(dsn)
        command = [sys.executable, "-m", "tests.bench.doors_server", dsn, name]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            given = json.loads(server.stdout.readline())
            socket = str(Path(name) / "doors.sock")
            polls, uploads = trio.run(_sides, socket, given["token"], given["record"])
            for clients in CLIENTS:
                _measure(socket, f"Polls, {clients} at once", polls, clients, rounds)
            for clients in CLIENTS:
                _measure(socket, f"Submissions of 1 MB, {clients} at once", uploads, clients, rounds)
            server.communicate(timeout=30)


async def _sides(socket: str, token: str, record: str) -> tuple[dict[str, Side], dict[str, Side]]:
    authorized = f"Host: rubezh\r\nAuthorization: Bearer {token}\r\n"
    poll = f"GET /v1/records/{record} HTTP/1.1\r\n{authorized}"
    async with await trio.open_unix_socket(socket) as stream:
        head = (await _answer(stream, f"{poll}\r\n".encode()))[0]
    etag = next(line[6:] for line in head.split("\r\n") if line.lower().startswith("etag: "))
    sent = f"Content-Length: {_MEGABYTE}\r\n\r\n".encode() + bytes(_MEGABYTE)
    return (
        {
            "bare": Side(request=f"GET /bare HTTP/1.1\r\n{authorized}\r\n".encode(), status=200),
            "poll": Side(request=f"{poll}\r\n".encode(), status=200),
            "poll, ETag known": Side(request=f"{poll}If-None-Match: {etag}\r\n\r\n".encode(), status=304),
        },
        {
            "bare": Side(request=f"POST /bare-upload HTTP/1.1\r\n{authorized}".encode() + sent, status=201),
            "bare, kept": Side(
                request=f"POST /bare-keeping HTTP/1.1\r\n{authorized}".encode() + sent, status=201
            ),
            "submit": Side(request=f"POST /v1/records HTTP/1.1\r\n{authorized}".encode() + sent, status=201),
        },
    )


def _measure(socket: str, title: str, sides: Mapping[str, Side], clients: int, rounds: int) -> None:
    before = load()
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in sorted(sides, reverse=bool(number % 2)):
            rates[name].append(trio.run(_rate, socket, sides[name], clients))
    bare = rates["bare"]
    rows = []
    for name in sides:
        ratios = [ours / theirs for ours, theirs in zip(rates[name], bare, strict=True)]
        rows.append((name, median(rates[name]), min(rates[name]), max(rates[name]), f"{median(ratios):.2f}"))
    show(
        title,
        ("", "a second", "lowest", "highest", "of bare"),
        rows,
        (f"{rounds} rounds of {SECONDS:g} s; load before {before}, after {load()}",),
    )


async def _rate(socket: str, side: Side, clients: int) -> float:
    """Return how many requests a second were answered to so many clients, each on one connection."""
    done = 0
    began = trio.current_time()

    async def ask() -> None:
        nonlocal done
        while trio.current_time() < began + SECONDS:
            async with await trio.open_unix_socket(socket) as stream:
                is_open = True
                while is_open and trio.current_time() < began + SECONDS:
                    head, _ = await _answer(stream, side.request)
                    assert int(head.split(" ", 2)[1]) == side.status, head
                    is_open = "connection: close" not in head.lower()  # as after a thousand
                    done += 1

    async with trio.open_nursery() as nursery:
        for _ in range(clients):
            nursery.start_soon(ask)
    return done / (trio.current_time() - began)


async def _answer(stream: trio.SocketStream, request: bytes) -> tuple[str, bytes]:
    await stream.send_all(request)
    said = b""
    while b"\r\n\r\n" not in said:
        said += await _more(stream)
    head, _, body = said.partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    lines = text.lower().split("\r\n")
    size = next((int(line[16:]) for line in lines if line.startswith("content-length: ")), 0)
    if " 304 " in lines[0]:
        size = 0
    while len(body) < size:
        body += await _more(stream)
    return text, body


async def _more(stream: trio.SocketStream) -> bytes:
    part = await stream.receive_some(_BLOCK)
    if not part:
        raise RuntimeError("the server ended the connection in the middle of an answer")
    return bytes(part)

"""What the doors' tests share: the real server on a unix socket, on a real database and a real store."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from attrs import define
from starlette.applications import Starlette

from daemon.intake import Inside, Polls, intake_app
from daemon.line import milestone_limit
from daemon.metrics import Metrics
from daemon.settings import IntakeSettings
from daemon.web import serve_web
from storage.account import Account
from storage.audio import Store
from storage.database import Database
from storage.ids import new_id
from tests.daemon.assembly import a_line
from tests.making import LANE, an_account, put
from tests.waiting import until

LARGEST = 1_000_000


async def _exposition() -> bytes:
    return Metrics(["convert"], [LANE]).exposition()


@define
class Doors:
    """An open door, whoever may come in, and what stands behind it."""

    app: Starlette
    socket: Path
    database: Database
    store: Store
    anna: Account
    secret: str
    stopping: bool = False
    silent: frozenset[str] = frozenset()
    closed: Mapping[str, str] = {}

    def client(self, secret: str | None = None, **changes: Any) -> httpx.AsyncClient:
        """Return a client with anna's token, or another one ("" for none)."""
        token = self.secret if secret is None else secret
        given: dict[str, Any] = {
            "transport": httpx.AsyncHTTPTransport(uds=str(self.socket)),
            "base_url": "http://rubezh",
            "headers": {"Authorization": f"Bearer {token}"} if token else {},
            "timeout": 30,
        }
        return httpx.AsyncClient(**{**given, **changes})

    async def speak(self, request: bytes, *, then: bytes = b"") -> bytes:
        """Say something byte for byte, then end the connection's other half and return the whole answer."""
        async with await trio.open_unix_socket(str(self.socket)) as stream:
            await stream.send_all(request + then)
            answer = b""
            with trio.fail_after(20):
                async for part in stream:
                    answer += part
            return answer

    def head(self, *headers: str, path: str = "/v1/records", method: str = "POST") -> bytes:
        """Return the head of a submission, to be sent by hand."""
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: rubezh",
            f"Authorization: Bearer {self.secret}",
            *headers,
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def left(self) -> tuple[int, list[str]]:
        """Return how many records there are, and every file in the store but its identity."""
        rows = await put(self.database, "SELECT count(*) FROM records")
        files = [path for path in self.store.root.rglob("*") if path.is_file()]
        return rows[0][0], sorted(
            str(path.relative_to(self.store.root)) for path in files if path.suffix != ".json"
        )

    async def comes_to(self, rows: int, files: list[str]) -> None:
        """Wait until so much is left: a server notices a broken connection in its own time."""

        async def reached() -> bool:
            return await self.left() == (rows, files)

        await until(reached)

    def receives(self, files: int) -> bool:
        """Tell whether so many files are being received."""
        return self.incoming() == files

    def incoming(self) -> int:
        """Return how many files are being received."""
        return len(list((self.store.root / "incoming").iterdir()))


@pytest.fixture
async def doors(
    database: Database, store: Store, reachable: Path, nursery: trio.Nursery
) -> AsyncIterator[Doors]:
    """Open doors for one account, anna's."""
    anna, secret = await an_account(database)
    socket = reachable / f"{new_id().hex[-12:]}.sock"
    given: list[Doors] = []
    polls = Polls(database)
    nursery.start_soon(polls.changes.listen, database)
    app = intake_app(
        database=database,
        store=store,
        accept_lane=LANE,
        settings=IntakeSettings(largest_bytes=LARGEST, open_uploads=24, account_uploads=20),
        stopping=lambda: given[0].stopping,
        polls=polls,
        inside=Inside(
            silent=lambda: given[0].silent,
            closed_lanes=lambda: given[0].closed,
            exposition=_exposition,
            milestone_limit=partial(milestone_limit, a_line()),
            models=("whisper-1", "base"),
        ),
    )
    given.append(Doors(app=app, socket=socket, database=database, store=store, anna=anna, secret=secret))

    await nursery.start(partial(serve_web, app, socket=socket))
    yield given[0]
    nursery.cancel_scope.cancel()


@pytest.fixture
def problem() -> Callable[[httpx.Response, int, str], str]:
    """Check that an answer is the problem it should be; return its detail."""

    def check(answer: httpx.Response, status: int, code: str) -> str:
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        content = json.loads(answer.content)
        assert set(content) == {"type", "title", "status", "detail", "code"}
        assert (content["status"], content["code"]) == (status, code)
        detail: str = content["detail"]
        return detail

    return check

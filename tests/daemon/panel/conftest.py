"""What the panel's tests share: the real server with the panel, and a browser that is only a client."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio
from attrs import define

from daemon.intake.browsers import PROOF, proof_of
from daemon.panel import attach
from daemon.settings import PanelSettings
from storage.account import Account
from storage.accounts import add_account
from storage.audio import Store
from storage.database import Database
from storage.sessions import Lasting, begin_session
from tests.daemon.intake.conftest import Doors
from tests.daemon.intake.conftest import doors as doors  # noqa: PLC0414 - a fixture, used by its name
from tests.talking import Heard, hearing

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


@define
class Browser:
    """A browser without an engine: it keeps cookies and says where a request comes from."""

    client: httpx.AsyncClient
    secret: str

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Open a page."""
        return await self.client.get(path, headers={"Accept": "text/html", **headers})

    async def post(self, path: str, **fields: Any) -> httpx.Response:
        """Send a form of a page of ours."""
        return await self.client.post(path, data={PROOF: proof_of(self.secret), **fields}, headers=SAME_SITE)


@asynccontextmanager
async def listening(browser: Browser, path: str) -> AsyncIterator[Heard]:
    """Listen to a stream during the block."""
    heard = Heard()
    async with hearing(browser.client, path, heard):
        yield heard


@define
class Panel:
    """The panel, and whoever looks at it."""

    doors: Doors
    open_clients: list[httpx.AsyncClient]

    @property
    def database(self) -> Database:
        """The database behind it."""
        return self.doors.database

    @property
    def store(self) -> Store:
        """The store behind it."""
        return self.doors.store

    @property
    def anna(self) -> Account:
        """Whose token the doors' own client has."""
        return self.doors.anna

    async def browser(self, account: Account | None, **changes: Any) -> Browser:
        """Return a browser at which `account` is signed in."""
        secret = await begin_session(self.database, account.id, Lasting()) if account else ""
        assert secret is not None
        client = self.doors.client("", **changes)
        if account:
            client.cookies.set("rubezh", secret)
        self.open_clients.append(client)
        return Browser(client, secret)

    async def account(self, name: str, *, is_owner: bool = False) -> Account:
        """Return one more account."""
        return await add_account(self.database, name, is_service_owner=is_owner)


@pytest.fixture
async def make_panel(doors: Doors) -> AsyncIterator[Callable[..., Panel]]:
    """Attach the panel to the doors, with settings."""
    made = Panel(doors, [])

    def make(**settings: Any) -> Panel:
        attach(doors.app, PanelSettings(**settings))
        return made

    yield make
    for client in made.open_clients:
        with trio.move_on_after(5, shield=True):
            await client.aclose()


@pytest.fixture
def panel(make_panel: Callable[..., Panel]) -> Panel:
    """The panel as it is when nothing is set."""
    return make_panel()

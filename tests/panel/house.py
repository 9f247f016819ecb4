"""A running service with people in it, and their browsers."""

import wave
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import trio
from attrs import define, field
from playwright.sync_api import Browser, BrowserContext, Dialog, Page

from storage.accounts import add_account, issue_token
from storage.database import Database, open_database, open_loop
from storage.sessions import Lasting, begin_session
from tests.acceptance.rig import Rig, eventually

PASSWORD = "correct horse battery"
SIZES: Mapping[str, tuple[int, int]] = {"desktop": (1200, 850), "phone": (390, 844)}


@define
class Person:
    """Somebody with an account, a token for programs and the secret of a session."""

    name: str
    id: UUID
    token: str
    session: str


@define
class House:
    """The service at `address`, and the browser that its visitors use."""

    rig: Rig
    address: str
    browser: Browser
    contexts: list[BrowserContext] = field(factory=list)
    noises: list[str] = field(factory=list)

    def person(self, name: str, *, is_owner: bool = False) -> Person:
        """Return a new person, signed in."""

        async def make(database: Database) -> Person:
            account = await add_account(database, name, is_service_owner=is_owner)
            _, token = await issue_token(database, account.id, "a test", None)
            session = await begin_session(database, account.id, Lasting())
            assert session is not None
            return Person(name, account.id, token, session)

        made: Person = self.do(make)
        return made

    def do(self, work: Callable[[Database], Any]) -> Any:
        """Do something on the service's database."""
        # Playwright has a loop of asyncio's running in this thread, and only one may run in each.
        with ThreadPoolExecutor(1) as beside:
            return beside.submit(trio.run, _on_database, self.rig.dsn, work).result()

    def visitor(self, person: Person | None = None, *, size: str = "desktop", **context: Any) -> Page:
        """Return a page of a browser of its own in which `person` is signed in."""
        width, height = SIZES[size]
        given = {"locale": "en", "base_url": self.address, "viewport": {"width": width, "height": height}}
        made = self.browser.new_context(**{**given, **context})
        self.contexts.append(made)
        made.set_default_timeout(15_000)
        if person is not None:
            made.add_cookies([{"name": "rubezh", "value": person.session, "url": self.address}])
        page = made.new_page()
        page.on("pageerror", lambda error: self.noises.append(f"{page.url}: {error}"))
        page.on("console", lambda said: self._hear(page, said.type, said.text))
        page.on("dialog", lambda dialog: self._refuse(dialog))  # noqa: PLW0108 - Playwright marks what it is given
        return page

    def _refuse(self, dialog: Dialog) -> None:
        self.noises.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _hear(self, page: Page, kind: str, text: str) -> None:
        # What the network refuses is told by the browser too; the tests look at the page for that.
        if kind in ("error", "warning") and not text.startswith("Failed to load resource"):
            self.noises.append(f"{page.url}: {text}")

    def submit(self, person: Person, content: bytes, **options: str) -> str:
        """Hand a recording in as a program does; return its id."""
        answer = httpx.post(
            f"{self.address}/v1/records",
            params={"filename": "talk.wav", **options},
            content=content,
            headers={"Authorization": f"Bearer {person.token}"},
            timeout=30,
        )
        answer.raise_for_status()
        record_id: str = answer.json()["id"]
        return record_id

    def poll(self, person: Person, record_id: str) -> dict[str, Any]:
        """Ask what a record is at, as a program does."""
        headers = {"Authorization": f"Bearer {person.token}"}
        answer = httpx.get(f"{self.address}/v1/records/{record_id}", headers=headers, timeout=30)
        shown: dict[str, Any] = answer.json()
        return shown

    def finished(self, person: Person, record_id: str) -> dict[str, Any]:
        """Wait until a record is done or stopped; return what it is at."""

        def over() -> dict[str, Any] | None:
            shown = self.poll(person, record_id)
            return shown if shown["milestone"] == "done" or shown["stopped"] else None

        shown: dict[str, Any] = eventually(over, f"the end of {record_id}")
        return shown

    def leave(self) -> None:
        """Close every browser window; no page may have complained."""
        for context in self.contexts:
            context.close()
        self.contexts.clear()
        noises, self.noises = self.noises, []
        assert noises == []


def a_tone(seconds: float) -> bytes:
    """Return so many seconds of a tone, as WAV."""
    times = np.arange(int(seconds * 16_000)) / 16_000
    samples = (np.sin(times * 2 * np.pi * 220) * 9_000).astype("<i2")
    file = BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(samples.tobytes())
    return file.getvalue()


async def _on_database(dsn: str, work: Callable[[Database], Any]) -> Any:
    async with (
        open_loop(),
        open_database(dsn, pool_size=2, call_seconds=20, statement_seconds=10, listen=True) as database,
    ):
        return await work(database)

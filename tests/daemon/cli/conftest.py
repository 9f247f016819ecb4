"""What the command line's tests share: `rubezh` run in this process upon a database of the test's own."""

import json
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest
import structlog
import trio
from attrs import frozen

from daemon.cli.program import ended
from storage.accounts import find_or_add_account
from storage.database import Database, open_database, open_loop
from storage.mounting import mount_store
from tests.making import a_record

T = TypeVar("T")


@frozen
class Ran:
    """How a command ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the document on stdout."""
        return json.loads(self.out)


@pytest.fixture
def rubezh(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Callable[..., Ran]]:
    """Run a command line and return how it ended; what it set up of the log is undone."""
    settings = tmp_path / "rubezh.toml"
    settings.write_text(f"[database]\ndsn = {json.dumps(dsn)}\n")
    monkeypatch.setenv("RUBEZH_CONFIG", str(settings))
    monkeypatch.setenv("RUBEZH_STATE", str(tmp_path / "state"))

    def run(*arguments: str) -> Ran:
        code = ended(arguments)
        out, err = capsysbinary.readouterr()
        return Ran(code, out.decode(), err.decode())

    yield run
    structlog.reset_defaults()


@pytest.fixture
def on_database(dsn: str) -> Callable[[Callable[[Database], Awaitable[T]]], T]:
    """Do something on the command line's database, in a Trio run of its own."""

    async def inside(work: Callable[[Database], Awaitable[T]]) -> T:
        async with (
            open_loop(),
            open_database(dsn, pool_size=2, call_seconds=20, statement_seconds=10, listen=True) as database,
        ):
            return await work(database)

    return lambda work: trio.run(inside, work)


@pytest.fixture
def record(on_database: Callable[..., Any], tmp_path: Path) -> str:
    """The id of a record that waits to be converted."""
    return str(on_database(partial(submitted, root=tmp_path / "store", filename="talk\x1b[2J.wav")))


async def submitted(
    database: Database, root: Path, *, owner: str = "anna", filename: str = "talk.wav"
) -> UUID:
    """Accept a record that waits to be converted."""
    await trio.Path(root).mkdir(exist_ok=True)
    store = await mount_store(database, root)
    return await a_record(
        database, store, await find_or_add_account(database, owner), filename=filename, title=""
    )

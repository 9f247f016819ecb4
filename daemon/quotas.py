"""The quotas that an attempt's stage is handed, kept in the database for all daemons together."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio
from attrs import frozen

from stages.stage import Allowance
from storage.database import Database
from storage.errors import DatabaseUnavailable
from storage.quotas import pause_quota, take_quota

T = TypeVar("T")

PAUSE_SECONDS = 0.5


@frozen
class SharedQuotas:
    """As `stages.stage.Quotas` says.

    While the database is away they wait: nothing is called without leave, and the attempt's own lease, which
    nobody renews by then, ends it.
    """

    database: Database

    async def take(self, allowance: Allowance) -> float:
        """Take one request of it and return 0, or return the seconds after which to ask again."""

        async def ask() -> float:
            return await take_quota(
                self.database, allowance.name, requests=allowance.requests, seconds=allowance.seconds
            )

        return await _patiently(ask)

    async def pause(self, name: str, seconds: float) -> None:
        """Have nobody take anything of `name` for so long."""

        async def ask() -> None:
            await pause_quota(self.database, name, seconds)

        await _patiently(ask)


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await ask()
        except DatabaseUnavailable:  # told by the keeper, once for the whole outage
            await trio.sleep(PAUSE_SECONDS)

"""Stands between a service and its claims: counts what is asked, and decides what becomes of the answers."""

from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import trio

from storage.claim import Claim, ClaimLost, NotFound, NoWork
from storage.claims import Claims, LastFailure, Passage, Settled
from storage.errors import DatabaseUnavailable, DatabaseUnreached
from storage.record import Milestone, Record
from tests.builders import Written
from tests.daemon.memory import MemoryClaims

T = TypeVar("T")
Proceed = Callable[[], Awaitable[Any]]
Deed = Callable[[Proceed], Awaitable[Any]]


async def answered(proceed: Proceed) -> object:
    """Let the call through."""
    return await proceed()


async def away(proceed: Proceed) -> object:
    """Let nothing reach the database."""
    del proceed
    await trio.lowlevel.checkpoint()
    raise DatabaseUnreached("the database is away")


async def answer_lost(proceed: Proceed) -> object:
    """Let the call through, and lose the answer."""
    await proceed()
    raise DatabaseUnavailable("the answer was lost")


def late(seconds: float) -> Deed:
    """Let the call through, and its answer only so much later."""

    async def deed(proceed: Proceed) -> object:
        answer = await proceed()
        await trio.sleep(seconds)
        return answer

    return deed


def after(seconds: float) -> Deed:
    """Let the call through only so much later."""

    async def deed(proceed: Proceed) -> object:
        await trio.sleep(seconds)
        return await proceed()

    return deed


def first(deed: Callable[[], Awaitable[object]]) -> Deed:
    """Do something else just before the call is let through."""

    async def whole(proceed: Proceed) -> object:
        await deed()
        return await proceed()

    return whole


def raising(error: BaseException) -> Deed:
    """Let the call end in an error."""

    async def deed(proceed: Proceed) -> object:
        del proceed
        await trio.lowlevel.checkpoint()
        raise error

    return deed


class Door:
    """Speaks like the claims behind it."""

    def __init__(self, behind: Claims | MemoryClaims) -> None:
        self.behind = behind
        self.calls: Counter[str] = Counter()
        self.asked_lanes: list[list[str]] = []
        self.written: list[Written] = []
        self.always: dict[str, Deed] = {}
        self._next: defaultdict[str, deque[Deed]] = defaultdict(deque)

    def then(self, verb: str, *deeds: Deed) -> None:
        """Decide what becomes of the next calls of `verb`, one by one."""
        self._next[verb].extend(deeds)

    @property
    def leases(self) -> Mapping[Milestone, float]:
        """The leases behind it."""
        return self.behind.leases

    async def claim(self, token: UUID, lanes: Iterable[str]) -> Claim | NoWork:
        """Ask for a claim."""
        free = list(lanes)
        self.asked_lanes.append(free)
        return await self._pass("claim", partial(self.behind.claim, token, free))

    async def read(self, record_id: UUID) -> Record | NotFound:
        """Ask for a record."""
        return await self._pass("read", partial(self.behind.read, record_id))

    async def last_failure(self, claim: Claim) -> LastFailure | None:
        """Ask for the last failure."""
        return await self._pass("last_failure", partial(self.behind.last_failure, claim))

    async def renew(self, tokens: Iterable[UUID]) -> dict[UUID, float]:
        """Ask for renewals."""
        return await self._pass("renew", partial(self.behind.renew, list(tokens)))

    async def settle(
        self, claim: Claim, ending: Written, passage: Passage, detail: Mapping[str, Any]
    ) -> Settled | ClaimLost:
        """Ask for a settle; keep those that were written."""
        settled = await self._pass("settle", partial(self.behind.settle, claim, ending, passage, detail))
        if isinstance(settled, Settled):
            self.written.append(ending)
        return settled

    async def give_back(self, token: UUID, why: str) -> bool:
        """Ask for a give-back."""
        return await self._pass("give_back", partial(self.behind.give_back, token, why))

    async def wake(self) -> None:
        """Ask for a waking."""
        await self._pass("wake", self.behind.wake)

    async def _pass(self, verb: str, proceed: Callable[[], Awaitable[T]]) -> T:
        self.calls[verb] += 1
        coming = self._next[verb]
        deed = coming.popleft() if coming else self.always.get(verb) or self.always.get("*", answered)
        answer: T = await deed(proceed)
        return answer

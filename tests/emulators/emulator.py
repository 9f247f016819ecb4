"""An emulated service: its calls pass a ledger, holds and faults before they are served."""

import json
import time
from collections.abc import Mapping
from typing import Any, Protocol

import trio
from attrs import define, field, frozen

from tests.emulators.faults import Faults, answer_of, manner_of
from tests.emulators.ledger import Call, Ledger
from tests.emulators.serving import PLAIN, Manner, Reply, Request


@frozen(kw_only=True)
class Quota:
    """So many calls of an operation within so many seconds."""

    most: int
    seconds: float


class Refuses(Exception):
    """The service refuses a call, with this reply, and has done nothing for it."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class Service(Protocol):
    """What a service does with a call, apart from everything that may go wrong with it."""

    def operation_of(self, request: Request) -> str:
        """Return the name of what is asked for; empty where the service has no such thing."""

    def serve(self, request: Request, call: Call) -> Reply:
        """Do what is asked and answer; what the call was about is noted in it. Raises Refuses."""

    def limited(self, retry_after: str | None) -> Reply:
        """Say that there were too many calls."""

    def change(self, wishes: Mapping[str, Any]) -> None:
        """Take on another manner; raises TypeError or KeyError for one it does not have."""


@define
class Hold:
    """The next call of `operation` waits `before` it is served, or after that, until it is let go.

    Let go as `lost`, a call is neither served nor answered any more.
    """

    operation: str
    before: bool
    passing: int = 0
    reached: bool = False
    lost: bool = False
    release: trio.Event = field(factory=trio.Event)


@define
class Emulator:
    """One service, with everything a test may do to it."""

    service: Service
    ledger: Ledger = field(factory=Ledger)
    faults: Faults = field(factory=Faults)
    quotas: dict[str, Quota] = field(factory=dict)
    retry_after: str | None = None
    holds: list[Hold] = field(factory=list)

    async def answer(self, request: Request) -> tuple[Reply, Manner]:
        """Answer one call."""
        operation = self.service.operation_of(request)
        call = self.ledger.open(operation, request)
        if not await self._pass(operation, before=True):
            return Reply(), Manner(silent=True)
        fault = self.faults.next(operation)
        reply = None if fault is None else answer_of(fault)
        if reply is None and fault is not None and fault.unheard:
            return Reply(), Manner(silent=True)
        if reply is None:
            reply = self._serve(request, call)
        call.status = reply.status
        if not await self._pass(operation, before=False):
            return reply, Manner(silent=True)
        return reply, PLAIN if fault is None else manner_of(fault, reply)

    def _serve(self, request: Request, call: Call) -> Reply:
        quota = self.quotas.get(call.operation)
        if quota and len(self.ledger.acted(call.operation, time.monotonic() - quota.seconds)) >= quota.most:
            call.over_quota = True
            return self.service.limited(self.retry_after)
        try:
            reply = self.service.serve(request, call)
        except Refuses as refused:
            return refused.reply
        call.acted = True
        call.acted_at = time.monotonic()
        return reply

    def let_go(self, *, lost: bool) -> None:
        """Let go of whatever is held up, and hold nothing up any more."""
        for hold in self.holds:
            hold.lost = lost
            hold.release.set()
        self.holds.clear()

    async def _pass(self, operation: str, *, before: bool) -> bool:
        """Wait where a test holds the calls up; False when this one is lost there."""
        for hold in self.holds:
            if hold.operation in (operation, "*") and hold.before == before and not hold.reached:
                if hold.passing:
                    hold.passing -= 1
                    continue
                hold.reached = True
                await hold.release.wait()
                return not hold.lost
        return True


def as_json(value: object, status: int = 200, **headers: str) -> Reply:
    """Return a reply of JSON."""
    body = json.dumps(value, ensure_ascii=False).encode()
    return Reply(status=status, headers={"Content-Type": "application/json", **headers}, body=body)

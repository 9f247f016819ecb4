"""The claims of a simulated process, watched: what becomes of each call, and whether the daemon heeds it."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from attrs import field, frozen

from storage.claim import Claim, ClaimLost, NoWork
from storage.claims import Passage, Settled
from storage.ending import Failed, GivenBack, TimedOut
from storage.errors import DatabaseUnavailable, DataRefused
from tests.builders import Written
from tests.model.fake_store import FakeClaims
from tests.model.world import Known, World

if TYPE_CHECKING:
    from tests.model.simulated import Process

T = TypeVar("T")


class KilledError(BaseException):
    """The process is no more: nothing that is left of it may do anything."""


@frozen(kw_only=True)
class WatchedClaims(FakeClaims):
    """The claims of one process, whose calls end when it does; notes what becomes of its answers."""

    world: World
    process: "Process"
    unheard: dict[UUID, str] = field(factory=dict)
    repaid: set[UUID] = field(factory=set)

    async def claim(self, token: UUID, lanes: Iterable[str]) -> Claim | NoWork:
        """Claim, and note until when the claim is known to hold."""
        asked_at = self.world.now
        claim = await super().claim(token, lanes)
        if isinstance(claim, Claim):
            # Meanwhile the record may be at another milestone: the answer was late.
            lease = next(
                event.detail["lease_seconds"]
                for event in reversed(self.world.reference.events)
                if event.kind == "claimed" and event.token == token
            )
            self.world.known[token] = Known(claim=claim, until=asked_at + lease)
        return claim

    async def renew(self, tokens: Iterable[UUID]) -> dict[UUID, float]:
        """Renew, and note what is said of each claim."""
        asked, asked_at = list(tokens), self.world.now
        renewed = await super().renew(asked)
        for token in asked:
            known = self.world.known.get(token)
            if known is not None and token in renewed:
                known.until = asked_at + renewed[token]
            elif known is not None and known.told_lost_at is None:
                known.told_lost_at = self.world.now
        return renewed

    async def settle(
        self, claim: Claim, ending: Written, passage: Passage, detail: Mapping[str, Any]
    ) -> Settled | ClaimLost:
        """Settle, and note what a lost answer came to."""
        world = self.world
        if isinstance(ending, GivenBack) and not self.process.stop.asked:
            world.fault(f"{self.process.name} gave {claim} back, and nobody had asked it to stop")
        known = world.known[claim.token]
        known.settling_since = world.now if known.settling_since is None else known.settling_since
        known.spent = isinstance(ending, Failed | TimedOut)
        if known.refused and known.spent:
            world.case("refused for its data, and failed")
        world.settling[claim.record_id] += 1
        try:
            settled = await super().settle(claim, ending, passage, detail)
        except DatabaseUnavailable:
            written = world.reference.has_ended(claim.token)
            self.unheard[claim.token] = "lost, and found" if written else "lost, and written when said again"
            raise
        except DataRefused:
            known.refused = True
            raise
        finally:
            world.settling[claim.record_id] -= 1
        if isinstance(settled, ClaimLost):
            world.case(f"fenced at its settle: {world.how_lost(claim)}")
        elif claim.token in self.unheard:
            world.case(f"settle: {self.unheard.pop(claim.token)}")
        return settled

    async def give_back(self, token: UUID, why: str) -> bool:
        """Give back, and note what the claim was."""
        if token in self.repaid:
            self.world.fault(f"{self.process.name} pays {token} back once more")
        given = await super().give_back(token, why)
        events = [event for event in self.world.reference.events if event.token == token]
        if given:
            self.repaid.add(token)
            self.world.case(f"repaid: {self.process.owed_for(token)}")
        elif not events:
            self.world.case("owed: not made yet, or never")
        elif not events[-1].settles:
            how = self.world.how_lost(Claim(record_id=events[0].record_id, token=token))
            self.world.case(f"owed: {how} meanwhile")
        return given

    async def _call(self, verb: str, step: Callable[[], T]) -> T:
        process, world = self.process, self.world
        process.check()
        if verb == "claim" and process.stop.asked:
            world.fault(f"{process.name} claims, and is stopping")
        try:
            answer = await self.store.call(self.fate_of(verb), step)
        finally:
            if process.dead:
                world.case(f"died in its {verb}")
            world.ring()
        process.check()
        return answer

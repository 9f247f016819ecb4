"""The claim protocol in memory, on Trio's clock: for tests in which hours pass at once.

It keeps what the statements of `storage/sql` promise and no more; `test_memory` walks it and the real one
through the same steps.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import trio
from attrs import define, evolve, field

from storage.claim import Claim, ClaimLost, NotFound, NoWork
from storage.claims import LastFailure, Passage, Settled
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.record import Milestone, Record, Stop, StopCode
from tests.builders import FAILURES_LIMIT, LANES, LEASES, Written
from tests.stages.nouns import NOW, a_record

KINDS = {Failed: "failed", TimedOut: "timed_out", GivenBack: "given_back"}


@define
class Row:
    """A record, the lease of its claim, and how each of its claims ended."""

    record: Record
    wake_at: float | None = None
    lease_seconds: float = 0.0
    ends: dict[UUID, tuple[str, str] | None] = field(factory=dict)
    settled: dict[UUID, Settled] = field(factory=dict)


class MemoryClaims:
    """Speaks like `storage.claims.Claims`."""

    def __init__(self, failures_limit: int = FAILURES_LIMIT) -> None:
        self.leases: Mapping[Milestone, float] = LEASES
        self.failures_limit = failures_limit
        self.rows: dict[UUID, Row] = {}

    async def claim(self, token: UUID, lanes: Iterable[str]) -> Claim | NoWork:
        """Take the first ready record."""
        await trio.lowlevel.checkpoint()
        free, now = list(lanes), trio.current_time()
        ready = [
            row
            for row in self.rows.values()
            if (row.wake_at is None or row.wake_at <= now)
            and row.record.stop is None
            and row.record.deleted_at is None
            and row.record.milestone is not Milestone.DONE
            and (row.record.lane in free or row.record.failures >= self.failures_limit)
        ]
        if not ready:
            return NoWork()
        row = min(ready, key=lambda row: (row.record.created_at, row.record.id))
        row.lease_seconds = self.leases[row.record.milestone]
        row.wake_at = now + row.lease_seconds
        row.record = evolve(row.record, claim_token=token, failures=row.record.failures + 1)
        row.ends[token] = None
        return Claim(record_id=row.record.id, token=token)

    async def read(self, record_id: UUID) -> Record | NotFound:
        """Read a record."""
        await trio.lowlevel.checkpoint()
        row = self.rows.get(record_id)
        return NotFound(record_id) if row is None or row.record.deleted_at else row.record

    async def last_failure(self, claim: Claim) -> LastFailure | None:
        """Return how the claim before this one ended, past what was given back."""
        await trio.lowlevel.checkpoint()
        ends = [end for token, end in self.rows[claim.record_id].ends.items() if token != claim.token]
        ends = [end for end in ends if end is None or end[0] != "given_back"]
        if not ends:
            return None
        kind, cause = ends[-1] or (None, None)
        return LastFailure(kind=kind, cause=cause)

    async def renew(self, tokens: Iterable[UUID]) -> dict[UUID, float]:
        """Push leases."""
        await trio.lowlevel.checkpoint()
        renewed = {}
        for token in tokens:
            if row := self._held(token):
                row.wake_at = trio.current_time() + row.lease_seconds
                renewed[token] = row.lease_seconds
        return renewed

    async def settle(
        self, claim: Claim, ending: Written, passage: Passage, detail: Mapping[str, Any]
    ) -> Settled | ClaimLost:
        """Write an end if the claim is still its own."""
        await trio.lowlevel.checkpoint()
        row = self.rows[claim.record_id]
        if row.record.claim_token != claim.token:
            return row.settled.get(claim.token, ClaimLost())
        changes: dict[str, Any] = {}
        delay, stopped = 0.0, None
        match ending:
            case Reached():
                changes = {"milestone": passage.gives, "lane": passage.next_lane, "failures": 0}
            case Deferred(delay, _, _):
                changes = {"failures": 0}
            case Hopeless(code, reason):
                stopped = code
                changes = {"stop": Stop(code=code, reason=reason, at=NOW, by="memory")}
            case Failed() | TimedOut():
                delay = passage.retry_delay
            case GivenBack():
                changes = {"failures": row.record.failures - 1}
        self._end(row, delay, **changes)
        row.ends[claim.token] = (KINDS.get(type(ending), "other"), str(detail.get("cause")))
        return row.settled.setdefault(claim.token, Settled(stopped=stopped))

    async def give_back(self, token: UUID, why: str) -> bool:
        """Give a claim back by its token."""
        await trio.lowlevel.checkpoint()
        row = self._held(token)
        if row is None:
            return False
        self._end(row, 0.0, failures=row.record.failures - 1)
        row.ends[token] = ("given_back", why)
        return True

    async def wake(self) -> None:
        """Nothing waits here that a claim would not see."""
        await trio.lowlevel.checkpoint()

    def _held(self, token: UUID) -> Row | None:
        return next((row for row in self.rows.values() if row.record.claim_token == token), None)

    def _end(self, row: Row, delay: float, **changes: Any) -> None:
        row.record = evolve(row.record, claim_token=None, **changes)
        row.wake_at = trio.current_time() + delay if delay else None


class MemoryQueue:
    """Speaks like `tests.builders.Queue`, as far as the tests of the two need it."""

    def __init__(self, failures_limit: int = FAILURES_LIMIT) -> None:
        self.claims = MemoryClaims(failures_limit)
        self.store = uuid4()

    async def record(self, milestone: Milestone = Milestone.CREATED, **columns: Any) -> UUID:
        """Make a record that waits at `milestone`; return its id."""
        record_id = uuid4()
        given = {
            "id": record_id,
            "created_at": NOW + timedelta(seconds=len(self.claims.rows)),
            "store_id": self.store,
            "source_path": f"records/{record_id}/source",
            "milestone": milestone,
            "lane": LANES[milestone],
            "failures": 0,
            "claim_token": None,
            "lease_until": None,
            "audio_path": None,
        }
        self.claims.rows[record_id] = Row(a_record(**(given | columns)))
        return record_id

    def now(self, record_id: UUID) -> Record:
        """Return a record as it stands."""
        return self.claims.rows[record_id].record

    async def row(self, record_id: UUID) -> dict[str, Any]:
        """Return the columns of a record that the tests of both queues look at."""
        record = self.now(record_id)
        return {
            "milestone": record.milestone,
            "failures": record.failures,
            "lane": record.lane,
            "claim_token": record.claim_token,
            "stop_code": None if record.stop is None else record.stop.code,
        }

    async def stop(self, record_id: UUID) -> None:
        """Do as the record's owner may do at any time."""
        stop = Stop(code=StopCode.STOPPED_BY_OWNER, reason="stopped", at=NOW, by="owner")
        row = self.claims.rows[record_id]
        row.record = evolve(row.record, stop=stop, claim_token=None)

    async def delete(self, record_id: UUID) -> None:
        """Make a record invisible, and take it off the count if it was held."""
        row = self.claims.rows[record_id]
        held = row.record.claim_token is not None
        row.record = evolve(row.record, deleted_at=NOW, claim_token=None, failures=row.record.failures - held)

    async def lapse(self, record_id: UUID) -> None:
        """Let the lease of a held record run out."""
        self.claims.rows[record_id].wake_at = trio.current_time() - 1

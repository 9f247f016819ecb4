"""The protocol as a small model: a dict of records, the rules, the events; no I/O, and a clock given to it.

It says what the statements of `storage/sql` must come to. `test_protocol` walks it beside a real PostgreSQL.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, assert_never
from uuid import UUID

from storage.claim import Claim, ClaimLost, NotFound, NoWork
from storage.claims import LastFailure, Passage, Settled
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.errors import DataRefused
from storage.owner import Verdict
from storage.record import Findings, Milestone, StopCode
from tests.builders import Written
from tests.model.history import Event
from tests.model.row import Row, moment, unkept, unsent, unstorable

_TICK = 1e-6  # seconds between two records made at the same moment, as on a real clock


class Reference:
    """All records, and all that ever happened to them; every method is one indivisible step."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.rows: dict[UUID, Row] = {}
        self.events: list[Event] = []
        self._ends: dict[UUID, Event] = {}
        self._born = -_TICK

    def accept(
        self, record_id: UUID, *, owner_id: UUID, store_id: UUID, lane: str, by: str, size: int
    ) -> None:
        """Make a record; a second time changes nothing."""
        if record_id in self.rows:
            return
        now = self.clock()
        self._born = max(now, self._born + _TICK)
        self.rows[record_id] = row = Row(
            id=record_id,
            owner_id=owner_id,
            store_id=store_id,
            lane=lane,
            created_at=self._born,
            milestone_since=now,
        )
        self._note(row, "accepted", by=by, detail={"bytes": size})

    def claim(
        self,
        token: UUID,
        lanes: Iterable[str],
        *,
        stores: Iterable[UUID],
        claimed_by: str,
        failures_limit: int,
        leases: Mapping[Milestone, float],
    ) -> Claim | NoWork:
        """Take the first ready record."""
        free, mounted, now = list(lanes), list(stores), self.clock()
        ready = [
            row
            for row in self.rows.values()
            if row.in_work
            and (row.wake_at is None or row.wake_at <= now)
            and (row.lane in free or row.failures >= failures_limit)
            and row.store_id in mounted
            and row.milestone in leases
        ]
        if not ready:
            return NoWork()
        if self._held(token) is not None:
            raise DataRefused("the token is in use")
        row = min(ready, key=lambda row: (row.created_at, row.id))
        seconds = leases[row.milestone]
        row.failures += 1
        row.claim_token, row.claimed_by, row.claimed_at = token, claimed_by, now
        row.lease_seconds, row.lease_until, row.wake_at = seconds, now + seconds, now + seconds
        facts = {"failures": row.failures, "lease_seconds": seconds}
        self._note(row, "claimed", token=token, by=claimed_by, detail=facts)
        return Claim(record_id=row.id, token=token)

    def last_failure(self, claim: Claim) -> LastFailure | None:
        """Return how the claim before this one ended, past what was given back."""
        for event in reversed(self.events):
            if event.kind != "claimed" or event.record_id != claim.record_id or event.token == claim.token:
                continue
            ended = self._ends.get(event.token) if event.token is not None else None
            if ended is None:
                return LastFailure(kind=None, cause=None)
            if ended.kind != "given_back":
                return LastFailure(
                    kind=ended.kind, cause=ended.detail.get("cause"), fault=ended.detail.get("fault")
                )
        return None

    def renew(self, tokens: Iterable[UUID]) -> dict[UUID, float]:
        """Push the leases of what is held."""
        now, renewed = self.clock(), {}
        for token in tokens:
            row = self._held(token)
            if row is not None and row.lease_seconds is not None:
                row.lease_until = row.wake_at = now + row.lease_seconds
                renewed[token] = row.lease_seconds
        return renewed

    def settle(
        self, claim: Claim, ending: Written, passage: Passage, by: str, detail: Mapping[str, Any]
    ) -> Settled | ClaimLost:
        """Write an end, if the claim is still its own; say so if it was written before."""
        row = self.rows.get(claim.record_id)
        held = row if row is not None and row.claim_token == claim.token else None
        findings = ending.findings if isinstance(ending, Reached | Deferred | Hopeless) else None
        if findings is not None:
            if unsent(findings):
                raise DataRefused("a finding cannot be sent")
            if held is not None and unkept(findings):
                raise DataRefused("a segment cannot be stored")
        told = held is not None or findings is None
        if told and unstorable([detail, ending.reason if isinstance(ending, Hopeless) else ""]):
            raise DataRefused("a fact cannot be stored")
        if isinstance(ending, GivenBack):
            held = self._held(claim.token)
        if held is None:
            return self._found(claim.token)
        self._end(held, ending, passage, by, dict(detail))
        return self._found(claim.token)

    def give_back(self, token: UUID, by: str, why: str) -> bool:
        """Give a claim back by its token."""
        row = self._held(token)
        if row is None:
            return False
        self._give_back(row, by, {"why": why})
        return True

    def wake(self) -> None:
        """Let what has come due wait for nothing but a claimer."""
        now = self.clock()
        for row in self.rows.values():
            if row.in_work and row.wake_at is not None and row.wake_at <= now:
                row.wake_at = None

    def stop(self, record_id: UUID, owner_id: UUID | None, by: str) -> Verdict | NotFound:
        """Do as a person may at any time."""
        row = self._of(record_id, owner_id)
        if row is None or row.deleted_at is not None:
            return NotFound(record_id)
        if not row.in_work:
            done = row.milestone is Milestone.DONE
            return Verdict.PAST_STOPPING if done else Verdict.ALREADY_STOPPED
        row.stop(StopCode.STOPPED_BY_OWNER, f"stopped by {by}", by, self.clock())
        row.wake_at = None
        row.release()
        self._note(row, "stopped", by=by, detail={"code": row.stop_code, "reason": row.stop_reason})
        return Verdict.DONE

    def lift(self, record_id: UUID, owner_id: UUID | None, by: str) -> Verdict | NotFound:
        """Lift the stop flag; what has none is left alone."""
        row = self._of(record_id, owner_id)
        if row is None or row.deleted_at is not None:
            return NotFound(record_id)
        if row.stop_code is None:
            return Verdict.NOT_STOPPED
        row.stop_code = row.stop_reason = row.stopped_by = row.stopped_at = None
        row.failures, row.milestone_seconds, row.wake_at = 0, 0.0, None
        row.milestone_since = self.clock()
        self._note(row, "lifted", by=by)
        return Verdict.DONE

    def delete(self, record_id: UUID, owner_id: UUID | None, by: str) -> Verdict | NotFound:
        """Make a record invisible; a claim that is open is taken off the count."""
        row = self._of(record_id, owner_id)
        if row is None or row.deleted_at is not None:
            return NotFound(record_id)
        row.deleted_at, row.wake_at = self.clock(), None
        row.failures -= row.claim_token is not None
        row.release()
        self._note(row, "deleted", by=by)
        return Verdict.DONE

    def undelete(self, record_id: UUID, owner_id: UUID | None, by: str) -> Verdict | NotFound:
        """Take a deletion back."""
        row = self._of(record_id, owner_id)
        if row is None:
            return NotFound(record_id)
        if row.deleted_at is None:
            return Verdict.NOT_DELETED
        row.deleted_at = None
        self._note(row, "undeleted", by=by)
        return Verdict.DONE

    def has_ended(self, token: UUID) -> bool:
        """Tell whether a claim has its end."""
        return token in self._ends

    def _of(self, record_id: UUID, owner_id: UUID | None) -> Row | None:
        row = self.rows.get(record_id)
        return row if row is not None and owner_id in (None, row.owner_id) else None

    def _held(self, token: UUID) -> Row | None:
        return next((row for row in self.rows.values() if row.claim_token == token), None)

    def _found(self, token: UUID) -> Settled | ClaimLost:
        ended = self._ends.get(token)
        if ended is None:
            return ClaimLost()
        code = ended.detail.get("code")
        return Settled(stopped=None if code is None else StopCode(code))

    def _end(self, row: Row, ending: Written, passage: Passage, by: str, facts: dict[str, Any]) -> None:
        now, token = self.clock(), row.claim_token
        spent = row.milestone_seconds + row.held_seconds(now)
        match ending:
            case Reached(findings):
                row.keep(findings)
                if passage.gives is Milestone.DONE:
                    row.recognised_text = row.whole_text()
                row.milestone, row.lane, row.milestone_since = passage.gives, passage.next_lane, now
                row.milestone_seconds, row.failures, row.wake_at = 0.0, 0, None
                kind = "reached"
            case Deferred(delay, findings, state):
                kind = self._defer(row, delay, findings, state, passage.milestone_limit, by, facts)
            case Hopeless(code, reason, findings):
                if findings is not None:
                    row.keep(findings)
                row.stop(code, reason, by, now)
                row.milestone_seconds, row.wake_at = spent, None
                facts |= {"code": str(code), "reason": reason}
                kind = "stopped"
            case Failed() | TimedOut():
                delay = passage.retry_delay
                row.milestone_seconds, row.wake_at = spent, now + delay if delay > 0 else None
                kind = "failed" if isinstance(ending, Failed) else "timed_out"
            case GivenBack():
                self._give_back(row, by, facts)
                return
            case _:
                assert_never(ending)
        row.release()
        self._note(row, kind, token=token, settles=True, by=by, detail=facts)

    def _defer(
        self,
        row: Row,
        delay: float,
        findings: Findings,
        state: str,
        limit: float,
        by: str,
        facts: dict[str, Any],
    ) -> str:
        now = self.clock()
        row.keep(findings)
        row.milestone_seconds += row.held_seconds(now) + delay
        row.failures = 0
        if row.milestone_seconds <= limit:
            row.wake_at = now + delay if delay > 0 else None
            return "deferred"
        reason = (
            f"more than {limit:.0f} s of work and waiting at one milestone; "
            f"the operation last said: {state or 'still in progress'}"
        )
        row.wake_at = None
        row.stop("overdue", reason, by, now)
        facts |= {"code": "overdue", "reason": reason, "failures_reset": True}
        return "stopped"

    def _give_back(self, row: Row, by: str, facts: dict[str, Any]) -> None:
        token = row.claim_token
        row.failures -= 1
        row.milestone_seconds += row.held_seconds(self.clock())
        row.wake_at = None
        row.release()
        self._note(row, "given_back", token=token, settles=True, by=by, detail=facts)

    def _note(
        self,
        row: Row,
        kind: str,
        *,
        by: str,
        token: UUID | None = None,
        settles: bool = False,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        event = Event(
            id=len(self.events) + 1,
            record_id=row.id,
            at=moment(self.clock()),
            kind=kind,
            milestone=str(row.milestone),
            token=token,
            settles=settles,
            by=by,
            detail=detail or {},
        )
        self.events.append(event)
        if settles and token is not None:
            self._ends[token] = event

    def read(self, record_id: UUID) -> Row | NotFound:
        """Return a row that is there."""
        row = self.rows.get(record_id)
        return NotFound(record_id) if row is None or row.deleted_at is not None else row

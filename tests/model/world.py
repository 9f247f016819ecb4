"""The world of a simulated run: one store, its people, what is known of everybody, and the trace of all."""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final
from uuid import UUID

import structlog
import trio
from attrs import define, field

from daemon.keeper import LONGEST_MARGIN_SECONDS
from storage.claim import Claim, ClaimLost
from storage.claims import Passage, Settled
from storage.owner import Verdict
from tests.builders import Written
from tests.model.chance import LANES, Plan, a_fate
from tests.model.fake_store import WELL, FakeStore, Fate
from tests.model.history import Event
from tests.model.reference import Reference
from tests.model.row import Row

OWNER: Final = UUID(int=1)
STORE: Final = UUID(int=2)
MAKES_READY: Final = frozenset({"accepted", "reached", "given_back", "lifted", "undeleted"})
ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")  # of an object, which is never the same
LOSES: Final = frozenset({"stopped", "deleted", "given_back", "lifted", "undeleted"})


class WatchedReference(Reference):
    """The reference, which notes what is rare and right."""

    def __init__(self, clock: Callable[[], float], note: Callable[[str], None]) -> None:
        super().__init__(clock)
        self._note_case = note

    def renew(self, tokens: Iterable[UUID]) -> dict[UUID, float]:
        """Push leases."""
        asked = list(tokens)
        if any(self._lapsed(token) for token in asked):
            self._note_case("a lapsed lease was renewed")
        return super().renew(asked)

    def settle(
        self, claim: Claim, ending: Written, passage: Passage, by: str, detail: Mapping[str, Any]
    ) -> Settled | ClaimLost:
        """Write an end."""
        before, lapsed = self.has_ended(claim.token), self._lapsed(claim.token)
        settled = super().settle(claim, ending, passage, by, detail)
        if before:
            self._note_case("a settle was said twice, and written once")
        elif lapsed:
            self._note_case("settled past its lease, which nobody else had")
        return settled

    def _lapsed(self, token: UUID) -> bool:
        row = self._held(token)
        return row is not None and row.lease_until is not None and row.lease_until < self.clock()


@define(kw_only=True)
class Known:
    """What a process was told of a claim of its own: `until` is when it ends as far as it can know."""

    claim: Claim
    until: float
    told_lost_at: float | None = None
    settling_since: float | None = None
    refused: bool = False
    spent: bool = False

    def given_up(self, now: float, patience: float) -> bool:
        """True when its settle may have been given up by now."""
        return self.settling_since is not None and now >= self.settling_since + patience - 0.01


@define
class Running:
    """An attempt whose stage is at work; `fenced` says that it ends when its lease does."""

    token: UUID
    fenced: bool = True


@define(kw_only=True)
class World:
    """All that the processes of a run share, and all that is noted of them."""

    plan: Plan
    chance: random.Random
    store: FakeStore
    failures_limit: int = 3
    began: float = field(factory=trio.current_time)
    calm: bool = False
    over: bool = False
    cases: Counter[str] = field(factory=Counter)
    faults: list[str] = field(factory=list)
    lines: list[str] | None = None
    running: dict[UUID, list[Running]] = field(factory=dict)
    settling: Counter[UUID] = field(factory=Counter)
    known: dict[UUID, Known] = field(factory=dict)
    bells: list[Any] = field(factory=list)
    _reference: WatchedReference = field(init=False)
    _told: int = 0
    _digest: Any = field(factory=hashlib.sha256)

    def __attrs_post_init__(self) -> None:
        """Have the store watched."""
        self.store.reference = self._reference = WatchedReference(self.store.now, self.case)

    @property
    def now(self) -> float:
        """Seconds since the run began, on Trio's clock."""
        return trio.current_time() - self.began

    @property
    def rows(self) -> dict[UUID, Row]:
        """The records."""
        return self.reference.rows

    @property
    def reference(self) -> WatchedReference:
        """What the store holds."""
        return self._reference

    @property
    def digest(self) -> str:
        """What is the same for the same run."""
        return str(self._digest.hexdigest())

    def case(self, name: str) -> None:
        """An interesting case was reached."""
        self.cases[name] += 1
        self.trace(f"* {name}")

    def fault(self, sentence: str) -> None:
        """Something is wrong."""
        self.faults.append(f"after {self.now:.3f} s: {sentence}")
        self.trace(f"! {sentence}")

    def trace(self, line: str) -> None:
        """Keep a line of the run."""
        line = f"{self.now:9.3f} {line}"
        self._digest.update(line.encode())
        if self.lines is not None:
            self.lines.append(line)

    def fate(self, verb: str) -> Fate:
        """Decide what becomes of a call."""
        if self.calm:
            return WELL
        fate = a_fate(self.chance, self.plan, self.now)
        if not fate.arrives or fate.late is not None or not fate.answered:
            self.trace(f"  {verb}: {fate}")
        return fate

    def lane_away(self, lane: str) -> bool:
        """True while what a lane needs is away."""
        return not self.calm and any(window.has(self.now) for window in self.plan.lane_away[lane])

    def uuid(self) -> UUID:
        """Make an id by chance."""
        return UUID(int=self.chance.getrandbits(128), version=4)

    def accept(self) -> None:
        """Accept a record; its answer may be lost, and it is then sent once more."""
        record_id = self.uuid()
        for _ in range(self.chance.choice((1, 1, 2))):
            self.store.act(
                lambda: self.reference.accept(
                    record_id, owner_id=OWNER, store_id=STORE, lane=LANES[0], by="owner", size=1
                )
            )
        self.ring()

    def ring(self) -> None:
        """Let those that can hear know of what has become ready."""
        events = self.reference.events
        news, self._told = events[self._told :], len(events)
        if any(event.kind in MAKES_READY for event in news):
            for bell in self.bells:
                if self.chance.random() >= self.plan.bell_deaf:
                    bell.ring()

    def person(self, what: str, on: int) -> None:
        """Do as a person may, to one of the records there are."""
        if not self.rows:
            return
        ids = list(self.rows)
        if what == "stop while settling":
            ids = [each for each in ids if self.settling[each] > 0] or ids
            what = "stop"
        record_id = ids[on % len(ids)]
        for verb in what.split(" and "):
            self._verb(verb, record_id)
        self.ring()

    def _verb(self, verb: str, record_id: UUID) -> None:
        row = self.rows[record_id]
        held = row.claim_token is not None
        at_work = any(running.token == row.claim_token for running in self.running.get(record_id, ()))
        answer = self.store.act(lambda: getattr(self.store.reference, verb)(record_id, None, "owner"))
        self.trace(f"person: {verb} {record_id} -> {answer}")
        if verb == "lift" and answer is Verdict.NOT_STOPPED:
            self.case("lift of a held record changed nothing" if held else "lift of what is not stopped")
        if answer is not Verdict.DONE:
            return
        if at_work:
            self.case({"stop": "stopped under a running stage"}.get(verb, f"{verb}d under a running stage"))
        if self.settling[record_id] > 0:
            self.case(f"{verb} while settling")

    def begins(self, record_id: UUID, running: Running) -> None:
        """A stage begins: nobody may still be at the same, but one who lost it before its lease ended."""
        others = self.running.setdefault(record_id, [])
        for other in others:
            early = self.lost_early(record_id, other.token) or self.lost_early(record_id, running.token)
            if other.fenced and not early and not self.plan.set_forward:
                self.fault(f"two attempts at once on {record_id}: {other.token} and {running.token}")
        others.append(running)

    def ends(self, record_id: UUID, running: Running) -> None:
        """A stage is no longer at work."""
        if running in self.running.get(record_id, ()):
            self.running[record_id].remove(running)
        if running.fenced and self.now > self.known[running.token].until:
            self.fault(f"{running.token} was worked on when its lease may have been over")
        told_at = self.known[running.token].told_lost_at
        if running.fenced and told_at is not None and self.now > told_at + 0.001:
            self.fault(f"{running.token} was worked on after it was known to be lost")

    def after_claim(self, record_id: UUID, token: UUID) -> list[Event]:
        """Return what happened to a record since a claim."""
        events = [event for event in self.reference.events if event.record_id == record_id]
        for place, event in enumerate(events):
            if event.kind == "claimed" and event.token == token:
                return events[place + 1 :]
        return []

    def lost_early(self, record_id: UUID, token: UUID) -> bool:
        """True when a claim was taken away from its holder by a person, or given back."""
        return any(event.kind in LOSES for event in self.after_claim(record_id, token))

    def how_lost(self, claim: Claim) -> str:
        """Tell how a claim was lost."""
        kinds = [event.kind for event in self.after_claim(claim.record_id, claim.token)]
        if not kinds:
            return "for no reason"
        if kinds[0] == "claimed":
            return "issued again"
        if kinds[0] == "stopped":
            lifted = "lifted" in kinds
            return (
                "stopped, lifted and issued again"
                if lifted and "claimed" in kinds
                else ("stopped and lifted" if lifted else "stopped")
            )
        return kinds[0]

    def log(self, _: object, method: str, facts: MutableMapping[str, Any]) -> Mapping[str, Any]:
        """Take what the daemon logs into the trace, and nowhere else."""
        event = facts.pop("event")
        facts.pop("exc_info", None)
        self.trace(ADDRESS.sub("", f"{method} {event} {facts}"))
        self.cases[f"log: {event}"] += 1
        if event == "lane.closed":
            self.case(
                "a lane was closed by failures" if "an attempt" in facts["reason"] else "a lane stayed closed"
            )
        if event == "claim.lost" and "record" not in facts:
            self._claim_lost(self.known[UUID(facts["token"])])
        if event == "record.stopped":
            late = "work at" in facts["reason"]
            self.case(f"stopped: {facts['code']}" + (" at a claim" if late else ""))
            if "process died" in facts["reason"]:
                self.case("stopped: its process died every time")
        raise structlog.DropEvent

    def _claim_lost(self, known: Known) -> None:
        if known.settling_since is not None:
            return
        self.case("a lease ended the work")
        known.spent = True
        taken = known.told_lost_at is not None and self.how_lost(known.claim) != "for no reason"
        if not taken and self.now < known.until - LONGEST_MARGIN_SECONDS:
            self.fault(f"the work on {known.claim} was ended, and its lease ran")

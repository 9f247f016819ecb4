"""Takes steps on a subject and on the reference side by side, and compares all there is after each."""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar
from uuid import UUID

import attrs

from storage.claim import Claim, NoWork
from storage.errors import DataRefused
from storage.record import Milestone, Record
from tests.model.history import Event, faults
from tests.model.reference import Reference
from tests.model.row import COLUMNS, MOMENTS
from tests.model.subjects import LEASES, SIZE, Process, Seen, Subject, World, aged

T = TypeVar("T")
Portal = Callable[[Callable[[], Awaitable[Any]]], Any]
REFUSED: Final = "refused for its data"
MOST_AT_WORK: Final = 5
MOST_RECORDS: Final = 12
TIMES: Final = (*sorted(MOMENTS - {"created_at"}), "milestone_seconds")
EXACT: Final = (*(column for column in COLUMNS if column not in {*TIMES, "created_at"}), "segments")


@attrs.frozen(kw_only=True)
class Held:
    """A claim that was made, by which process, and at which milestone."""

    claim: Claim
    process: int
    milestone: Milestone


class Walk:
    """What was done so far; `portal` runs a coroutine where the subject lives."""

    def __init__(self, portal: Portal, subject: Subject, world: World) -> None:
        self.portal, self.subject, self.world = portal, subject, world
        self.now = 0.0
        self.reference = Reference(lambda: self.now)
        self.began = time.perf_counter()
        self.records: list[UUID] = []
        self.held: list[Held] = []
        self.tokens: list[UUID] = []
        self.last_event = 0
        self.compared = 0

    def accept(self, record_id: UUID, owner: int, store: int) -> None:
        """Accept a record on both sides."""
        owner_id, store_id = self.world.owners[owner], self.world.stores[store]
        by = World.name_of(owner_id)
        self.step(
            lambda: self.subject.accept(record_id, owner_id, store_id, "convert"),
            lambda: self.reference.accept(
                record_id, owner_id=owner_id, store_id=store_id, lane="convert", by=by, size=SIZE
            ),
        )

    def model_claim(self, process: int, token: UUID, lanes: tuple[str, ...]) -> Callable[[], Claim | NoWork]:
        """Return the claim as the reference makes it."""
        asks: Process = self.world.processes[process]
        return lambda: self.reference.claim(
            token,
            lanes,
            stores=asks.stores,
            claimed_by=asks.name,
            failures_limit=asks.failures_limit,
            leases=LEASES,
        )

    def hold(self, process: int, claim: Claim | NoWork | str) -> None:
        """Keep a claim for later steps."""
        if isinstance(claim, Claim):
            milestone = self.reference.rows[claim.record_id].milestone
            self.held.append(Held(claim=claim, process=process, milestone=milestone))

    @property
    def needs_records(self) -> bool:
        """True while few records are in work, and not too many to be looked at after each step."""
        at_work = sum(row.in_work for row in self.reference.rows.values())
        return at_work < MOST_AT_WORK and len(self.records) < MOST_RECORDS

    def is_open(self, claim: Claim) -> bool:
        """True while a claim is its holder's."""
        return self.reference.rows[claim.record_id].claim_token == claim.token

    def new_token(self) -> UUID:
        """Make a token."""
        token = UUID(int=(1 << 100) + len(self.tokens) + 1)
        self.tokens.append(token)
        return token

    def end(self) -> None:
        """See that the history proves itself, too."""
        assert faults(self.reference.events, slack_seconds=0) == []

    def step(self, real: Callable[[], Awaitable[T]], modelled: Callable[[], T]) -> T | str:
        """Take one step on both sides; the answers, and all that is there afterwards, must be alike."""

        async def whole() -> tuple[T | str, Seen]:
            try:
                answer: T | str = await real()
            except DataRefused:
                answer = REFUSED
            return answer, await self.subject.look(self.last_event)

        answered, seen = self.portal(whole)
        try:
            expected: T | str = modelled()
        except DataRefused:
            expected = REFUSED
        assert answered == expected
        self.compare(seen)
        return expected

    def look(self) -> Seen:
        """See all there is."""
        seen: Seen = self.portal(lambda: self.subject.look(self.last_event))
        return seen

    def compare(self, seen: Seen | None = None) -> None:
        """Compare every column of every record, and every event, as far as real time allows."""
        seen = seen or self.look()
        drift = time.perf_counter() - self.began + 0.01
        assert seen.rows.keys() == self.reference.rows.keys()
        for record_id, columns in seen.rows.items():
            expected = aged(self.reference.rows[record_id], self.now)
            for column in EXACT:
                assert columns[column] == expected[column], f"{column} of {record_id}"
            for column in TIMES:
                assert alike(columns[column], expected[column], drift), f"{column} of {record_id}"
        self.compare_events(seen, drift)

    def compare_events(self, seen: Seen, drift: float) -> None:
        """Compare what is new in the history of each record."""
        expected, self.compared = self.reference.events[self.compared :], len(self.reference.events)
        assert by_record(told(event) for event, _ in seen.events) == by_record(map(told, expected))
        for event, age in seen.events:
            self.last_event = event.id
            assert age <= drift, f"{event} is told of the past"


def by_record(events: Iterable[tuple[UUID, Any]]) -> dict[UUID, list[Any]]:
    """Put the events of each record together, in their order."""
    found: dict[UUID, list[Any]] = {}
    for record_id, event in events:
        found.setdefault(record_id, []).append(event)
    return found


def nth(things: list[T], back: int) -> T:
    """Return one of the newest things."""
    return things[-1 - back % len(things)]


def alike(seen: object, expected: object, drift: float) -> bool:
    """True for the same value; a time may be older by the real time that has passed."""
    if isinstance(seen, float) and isinstance(expected, float):
        return -0.001 <= seen - expected <= drift
    return seen == expected


def told(event: Event) -> tuple[UUID, tuple[object, ...]]:
    """Return what an event tells of which record, without its time and number."""
    facts = event.kind, event.milestone, event.token, event.settles, event.by, dict(event.detail)
    return event.record_id, facts


def without_times(record: Record) -> dict[str, Any]:
    """Return a record without what depends on the moment."""
    times = ("created_at", "milestone_since", "lease_until", "deleted_at", "milestone_seconds")
    seen = {name: value for name, value in attrs.asdict(record, recurse=False).items() if name not in times}
    return seen | {"stop": record.stop and (record.stop.code, record.stop.reason, record.stop.by)}

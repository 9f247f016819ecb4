"""A machine that walks a subject and the reference through the protocol side by side and compares all."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

import attrs
import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from storage.claim import Claim, NotFound, NoWork
from storage.claims import Passage
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.errors import DataRefused
from storage.record import Findings, Milestone, OperationBegun, Record, StopCode
from tests.builders import EVERY_LANE, FOUND, LANES, NEXT, Written, advance, conversion, segment
from tests.model.history import Event, faults
from tests.model.reference import Reference
from tests.model.row import COLUMNS, MOMENTS
from tests.model.subjects import LEASES, SIZE, Process, Seen, Subject, World, aged

T = TypeVar("T")
Portal = Callable[[Callable[[], Awaitable[Any]]], Any]
REFUSED: Final = "refused for its data"

# All times are hundreds of seconds, and all limits lie between: real time passes too, a little.
PROCESSES = st.integers(0, 2)
LANE_SETS = st.sampled_from([EVERY_LANE, EVERY_LANE, EVERY_LANE, ("convert",), ("whisper",), ()])
BACK = st.integers(0, 6)  # how far back from the newest one
SECONDS = st.sampled_from([100.0, 200.0, 400.0, 700.0, 1000.0])
DELAYS = st.sampled_from([0.0, 0.0, 200.0, 400.0])
LIMITS = st.sampled_from([50.0, 350.0, 950.0, 100_000.0, 100_000.0])
ENDINGS = st.sampled_from(
    [
        "reached",
        "reached",
        "reached",
        "deferred",
        "deferred",
        "hopeless",
        "failed",
        "failed",
        "timed_out",
        "given_back",
    ]
)
BAD = st.sampled_from(["", "", "", "", "", "", "value", "segment", "detail"])
VERBS = st.sampled_from(["stop", "stop", "lift", "lift", "lift", "delete", "undelete", "undelete"])
ASKERS = st.sampled_from(["service", "owner", "owner", "stranger"])


UNSTORABLE: Final[Mapping[Milestone, Findings]] = {
    Milestone.CREATED: conversion("records/\0"),
    Milestone.CONVERTED: OperationBegun(recogniser="whisper", operation={"state": "\0"}),
    Milestone.TRANSCRIBE: attrs.evolve(advance(), found_language="\0"),
}


@attrs.frozen(kw_only=True)
class Held:
    """A claim that was made, by which process, and at which milestone."""

    claim: Claim
    process: int
    milestone: Milestone


class ProtocolMachine(RuleBasedStateMachine):
    """The rules; `portal` runs a coroutine where the subject lives."""

    def __init__(self, portal: Portal, subject: Subject, world: World) -> None:
        super().__init__()
        self.portal, self.subject, self.world = portal, subject, world
        self.now = 0.0
        self.reference = Reference(lambda: self.now)
        self.began = time.perf_counter()
        self.records: list[UUID] = []
        self.held: list[Held] = []
        self.tokens: list[UUID] = []
        self.last_event = 0
        self.events: dict[UUID, list[Event]] = {}

    # Records

    @initialize(number=st.integers(1, 3))
    def begin(self, number: int) -> None:
        """Begin with a few records."""
        self.portal(self.subject.begin)
        self.last_event = max((event.id for event, _ in self.look().events), default=0)
        for _ in range(number):
            self.add(rank=0, owner=0, store=0)

    @precondition(lambda self: len(self.records) < 8)
    @rule(rank=st.integers(0, 3), owner=st.integers(0, 1), store=st.sampled_from([0, 0, 1]))
    def add(self, rank: int, owner: int, store: int) -> None:
        """Accept a record; a higher rank is a later key."""
        record_id = UUID(int=(rank << 80) + len(self.records) + 1)
        self.records.append(record_id)
        self.accept(record_id, owner, store)

    @rule(back=BACK, owner=st.integers(0, 1))
    def add_again(self, back: int, owner: int) -> None:
        """Accept a record whose answer was lost, once more."""
        self.accept(nth(self.records, back), owner, 0)

    @precondition(lambda self: len(self.records) < 7)
    @rule(ranks=st.sampled_from([(0, 1), (1, 0)]))
    def add_two_at_once(self, ranks: tuple[int, int]) -> None:
        """Accept two records at the very same moment: the key decides."""
        for rank in ranks:
            self.add(rank=rank, owner=0, store=0)
        together = self.records[-2:]
        born = max(self.reference.rows[record_id].created_at for record_id in together)
        for record_id in together:
            self.reference.rows[record_id].created_at = born
        self.step(lambda: self.subject.born_together(together), lambda: None)

    # The protocol

    @rule(process=PROCESSES, lanes=LANE_SETS)
    def claim(self, process: int, lanes: tuple[str, ...]) -> None:
        """Claim; whether the answer is heard makes no difference to the store."""
        token = self.new_token()
        claim = self.step(
            lambda: self.subject.claims[process].claim(token, lanes), self.model_claim(process, token, lanes)
        )
        self.hold(process, claim)

    @rule(processes=st.lists(PROCESSES, min_size=2, max_size=4))
    def claim_at_once(self, processes: list[int]) -> None:
        """Claim by several at the same moment: together they take the first ready records, each another."""
        tokens = [self.new_token() for _ in processes]
        answers: dict[UUID, Claim | NoWork] = {}

        async def at_once() -> None:
            async def ask(process: int, token: UUID) -> None:
                answers[token] = await self.subject.claims[process].claim(token, EVERY_LANE)

            async with trio.open_nursery() as nursery:
                for process, token in zip(processes, tokens, strict=True):
                    nursery.start_soon(ask, process, token)

        self.portal(at_once)
        by = dict(zip(tokens, processes, strict=True))
        rows = self.reference.rows
        taken = [claim for claim in answers.values() if isinstance(claim, Claim)]
        taken.sort(key=lambda claim: (rows[claim.record_id].created_at, claim.record_id))
        for claim in taken:
            assert self.model_claim(by[claim.token], claim.token, EVERY_LANE)() == claim
            self.hold(by[claim.token], claim)
        for token, process in by.items():
            if isinstance(answers[token], NoWork):
                assert self.model_claim(process, token, EVERY_LANE)() == NoWork()
        self.compare()

    @precondition(lambda self: self.tokens)
    @rule(process=PROCESSES, back=BACK)
    def claim_late(self, process: int, back: int) -> None:
        """Claim under a token that was given back in vain before: the claim arrives only now."""
        token = nth(self.tokens, back)
        if any(held.claim.token == token for held in self.held):
            return
        claim = self.step(
            lambda: self.subject.claims[process].claim(token, EVERY_LANE),
            self.model_claim(process, token, EVERY_LANE),
        )
        self.hold(process, claim)

    @precondition(lambda self: self.tokens)
    @rule(backs=st.lists(BACK, max_size=5, unique=True))
    def renew(self, backs: list[int]) -> None:
        """Renew claims, whosever they are now."""
        tokens = list({nth(self.tokens, back) for back in backs})
        claims = self.subject.claims[0]
        self.step(lambda: claims.renew(tokens), lambda: self.reference.renew(tokens))

    @precondition(lambda self: self.held)
    @rule(back=BACK, ending=ENDINGS, delay=DELAYS, retry=DELAYS, limit=LIMITS, bad=BAD, cut=st.booleans())
    def settle(
        self, *, back: int, ending: str, delay: float, retry: float, limit: float, bad: str, cut: bool
    ) -> None:
        """Settle a claim, whatever became of it meanwhile; perhaps after a settle that was cut short."""
        held = nth(self.held, back)
        gives = NEXT[held.milestone]
        passage = Passage(gives=gives, next_lane=LANES[gives], milestone_limit=limit, retry_delay=retry)
        written = an_ending(ending, held.milestone, delay, bad)
        detail = {"cause": "a \0 in it" if bad == "detail" else "a cause", "delay": delay}

        async def say(claims: Any) -> object:
            return await claims.settle(held.claim, written, passage, detail)

        if cut and not bad:
            self.step(lambda: self.subject.cut(held.process, say), lambda: None)
        name = self.world.processes[held.process].name
        self.step(
            lambda: say(self.subject.claims[held.process]),
            lambda: self.reference.settle(held.claim, written, passage, name, detail),
        )

    @precondition(lambda self: self.tokens)
    @rule(back=BACK, process=PROCESSES, cut=st.booleans())
    def give_back(self, back: int, process: int, *, cut: bool) -> None:
        """Give a claim back by its token, whether it was ever made or not."""
        token = nth(self.tokens, back)

        async def say(claims: Any) -> object:
            return await claims.give_back(token, "it was lost")

        if cut:
            self.step(lambda: self.subject.cut(process, say), lambda: None)
        name = self.world.processes[process].name
        self.step(
            lambda: say(self.subject.claims[process]),
            lambda: self.reference.give_back(token, name, "it was lost"),
        )

    @rule(process=PROCESSES)
    def claim_cut(self, process: int) -> None:
        """Let a claim come to nothing before its commit; its token may be given back, or arrive late."""
        token = self.new_token()

        async def say(claims: Any) -> object:
            return await claims.claim(token, EVERY_LANE)

        self.step(lambda: self.subject.cut(process, say), lambda: None)

    @rule()
    def wake(self) -> None:
        """Wake what has come due."""
        self.step(self.subject.claims[0].wake, self.reference.wake)

    @precondition(lambda self: self.held)
    @rule(back=BACK)
    def ask_for_last_failure(self, back: int) -> None:
        """Ask how the claim before this one ended."""
        claim = nth(self.held, back).claim
        self.step(
            lambda: self.subject.claims[0].last_failure(claim), lambda: self.reference.last_failure(claim)
        )

    @rule(back=BACK)
    def read(self, back: int) -> None:
        """Read a record."""
        record_id = nth(self.records, back)
        row = self.reference.read(record_id)
        seen = self.portal(lambda: self.subject.claims[0].read(record_id))
        if isinstance(row, NotFound):
            assert seen == row
            return
        assert without_times(seen) == without_times(row.as_record())

    # People and time

    @rule(back=BACK, verb=VERBS, asker=ASKERS)
    def person(self, back: int, verb: str, asker: str) -> None:
        """Stop, lift, delete or undelete, also what is none of one's own."""
        record_id = nth(self.records, back)
        mine = self.reference.rows[record_id].owner_id
        [other] = [each for each in self.world.owners if each != mine]
        owner_id = {"service": None, "owner": mine, "stranger": other}[asker]
        self.step(
            lambda: self.subject.person(verb, record_id, owner_id, asker),
            lambda: getattr(self.reference, verb)(record_id, owner_id, asker),
        )

    @rule(seconds=SECONDS)
    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.step(lambda: self.subject.advance(seconds), lambda: None)

    # Comparing

    def teardown(self) -> None:
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
            for column in (*COLUMNS, "segments"):
                is_time = column in MOMENTS or column == "milestone_seconds"
                if column != "created_at":
                    where = f"{column} of {record_id}"
                    assert alike(columns[column], expected[column], drift if is_time else 0), where
        for event, age in seen.events:
            self.last_event = max(self.last_event, event.id)
            self.events.setdefault(event.record_id, []).append(event)
            assert age <= drift, "an event in the past"
        self.compare_events()

    def compare_events(self) -> None:
        """Compare the history of each record."""
        expected: dict[UUID, list[Event]] = {}
        for event in self.reference.events:
            expected.setdefault(event.record_id, []).append(event)
        assert self.events.keys() == expected.keys()
        for record_id, events in expected.items():
            assert [told(event) for event in self.events[record_id]] == [told(event) for event in events]

    # Helpers

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

    def new_token(self) -> UUID:
        """Make a token."""
        token = UUID(int=(1 << 100) + len(self.tokens) + 1)
        self.tokens.append(token)
        return token


def nth(things: list[T], back: int) -> T:
    """Return one of the newest things."""
    return things[-1 - back % len(things)]


def alike(seen: object, expected: object, drift: float) -> bool:
    """True for the same value; a time may be older by the real time that has passed."""
    if drift and isinstance(seen, float) and isinstance(expected, float):
        return -0.001 <= seen - expected <= drift
    return seen == expected


def told(event: Event) -> tuple[object, ...]:
    """Return what an event tells, without its time and number."""
    return event.kind, event.milestone, event.token, event.settles, event.by, dict(event.detail)


def without_times(record: Record) -> dict[str, Any]:
    """Return a record without what depends on the moment."""
    times = ("created_at", "milestone_since", "lease_until", "deleted_at", "milestone_seconds")
    seen = {name: value for name, value in attrs.asdict(record, recurse=False).items() if name not in times}
    return seen | {"stop": record.stop and (record.stop.code, record.stop.reason, record.stop.by)}


def an_ending(kind: str, milestone: Milestone, delay: float, bad: str) -> Written:
    """Make an ending of that kind at that milestone, perhaps with a value that cannot be stored."""
    found = (UNSTORABLE if bad == "value" else FOUND)[milestone]
    if bad == "segment" and milestone is Milestone.TRANSCRIBE:
        found = advance(segment(0, "kept"), attrs.evolve(segment(1, "reversed"), start=9.0, end=1.0))
    reason = "no \0 sound" if bad == "value" else "no sound"
    endings: dict[str, Written] = {
        "reached": Reached(found),
        "deferred": Deferred(delay, found, "so far"),
        "hopeless": Hopeless(StopCode.NO_AUDIO, reason),
        "failed": Failed("a cause"),
        "timed_out": TimedOut("a cause"),
        "given_back": GivenBack("a cause"),
    }
    return endings[kind]

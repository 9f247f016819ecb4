"""The rules by which a subject and the reference are walked through the protocol side by side."""

from typing import Any
from uuid import UUID

import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from storage.claim import Claim, NotFound, NoWork
from storage.claims import Passage
from tests.builders import EVERY_LANE, LANES, NEXT
from tests.model.subjects import Subject, World
from tests.model.values import (
    ASKERS,
    BACK,
    FITTING,
    LANE_SETS,
    PROCESSES,
    SECONDS,
    SETTLINGS,
    VERBS,
    Settling,
    fits,
)
from tests.model.walking import Portal, Walk, nth, without_times


class ProtocolMachine(RuleBasedStateMachine):
    """The rules.

    Who wins a race is not the machine's to say, so whether a rule has something to do is asked inside it: by
    a precondition the same choices would come to other rules the next time.
    """

    def __init__(self, portal: Portal, subject: Subject, world: World) -> None:
        super().__init__()
        self.walk = Walk(portal, subject, world)

    def teardown(self) -> None:
        """See that the history proves itself, too."""
        self.walk.end()

    # Records

    @initialize(number=st.integers(1, 3))
    def begin(self, number: int) -> None:
        """Begin with a few records."""
        self.walk.portal(self.walk.subject.begin)
        self.walk.last_event = max((event.id for event, _ in self.walk.look().events), default=0)
        for _ in range(number):
            self._add(0, 0, 0)

    def _add(self, rank: int, owner: int, store: int) -> None:
        record_id = UUID(int=(rank << 80) + len(self.walk.records) + 1)
        self.walk.records.append(record_id)
        self.walk.accept(record_id, owner, store)

    @rule(rank=st.integers(0, 3), owner=st.integers(0, 1), store=st.sampled_from([0, 0, 1]))
    def add(self, rank: int, owner: int, store: int) -> None:
        """Accept a record, while more are needed; a higher rank is a later key."""
        if self.walk.needs_records:
            self._add(rank, owner, store)

    @rule(back=BACK, owner=st.integers(0, 1))
    def add_again(self, back: int, owner: int) -> None:
        """Accept a record whose answer was lost, once more."""
        self.walk.accept(nth(self.walk.records, back), owner, 0)

    @rule(ranks=st.sampled_from([(0, 1), (1, 0)]))
    def add_two_at_once(self, ranks: tuple[int, int]) -> None:
        """Accept two records at the very same moment, while more are needed: the key decides."""
        if not self.walk.needs_records:
            return
        for rank in ranks:
            self._add(rank, 0, 0)
        together = self.walk.records[-2:]
        born = max(self.walk.reference.rows[record_id].created_at for record_id in together)
        for record_id in together:
            self.walk.reference.rows[record_id].created_at = born
        self.walk.step(lambda: self.walk.subject.born_together(together), lambda: None)

    # The protocol

    @rule(process=PROCESSES, lanes=LANE_SETS)
    def claim(self, process: int, lanes: tuple[str, ...]) -> None:
        """Claim; whether the answer is heard makes no difference to the store."""
        token = self.walk.new_token()
        claim = self.walk.step(
            lambda: self.walk.subject.claims[process].claim(token, lanes),
            self.walk.model_claim(process, token, lanes),
        )
        self.walk.hold(process, claim)

    @rule(processes=st.lists(PROCESSES, min_size=2, max_size=4))
    def claim_at_once(self, processes: list[int]) -> None:
        """Claim by several at the same moment: together they take the first ready records, each another."""
        tokens = [self.walk.new_token() for _ in processes]
        answers: dict[UUID, Claim | NoWork] = {}

        async def at_once() -> None:
            async def ask(process: int, token: UUID) -> None:
                answers[token] = await self.walk.subject.claims[process].claim(token, EVERY_LANE)

            async with trio.open_nursery() as nursery:
                for process, token in zip(processes, tokens, strict=True):
                    nursery.start_soon(ask, process, token)

        self.walk.portal(at_once)
        by = dict(zip(tokens, processes, strict=True))
        rows = self.walk.reference.rows
        taken = [claim for claim in answers.values() if isinstance(claim, Claim)]
        taken.sort(key=lambda claim: (rows[claim.record_id].created_at, claim.record_id))
        for claim in taken:
            assert self.walk.model_claim(by[claim.token], claim.token, EVERY_LANE)() == claim
            self.walk.hold(by[claim.token], claim)
        for token, process in by.items():
            if isinstance(answers[token], NoWork):
                assert self.walk.model_claim(process, token, EVERY_LANE)() == NoWork()
        self.walk.compare()

    @precondition(lambda self: self.walk.tokens)
    @rule(process=PROCESSES, back=BACK)
    def claim_late(self, process: int, back: int) -> None:
        """Claim under a token that was given back in vain before: the claim arrives only now."""
        token = nth(self.walk.tokens, back)
        if any(held.claim.token == token for held in self.walk.held):
            return
        claim = self.walk.step(
            lambda: self.walk.subject.claims[process].claim(token, EVERY_LANE),
            self.walk.model_claim(process, token, EVERY_LANE),
        )
        self.walk.hold(process, claim)

    @precondition(lambda self: self.walk.tokens)
    @rule(backs=st.lists(BACK, max_size=5, unique=True))
    def renew(self, backs: list[int]) -> None:
        """Renew claims, whosever they are now."""
        tokens = list({nth(self.walk.tokens, back) for back in backs})
        claims = self.walk.subject.claims[0]
        self.walk.step(lambda: claims.renew(tokens), lambda: self.walk.reference.renew(tokens))

    @rule(back=BACK, fitting=FITTING, how=SETTLINGS, cut=st.booleans())
    def settle(self, *, back: int, fitting: bool, how: Settling, cut: bool) -> None:
        """Settle a claim, whatever became of it meanwhile; perhaps after a settle that was cut short."""
        if not self.walk.held:
            return
        open_ones = [each for each in self.walk.held if self.walk.is_open(each.claim)]
        held = nth(open_ones if fitting and open_ones else self.walk.held, back)
        gives = NEXT[held.milestone]
        passage = Passage(
            gives=gives, next_lane=LANES[gives], milestone_limit=how.limit, retry_delay=how.retry
        )
        written = how.at(held.milestone)
        detail = {"cause": "a \0 in it" if how.bad == "detail" else "a cause", "delay": how.delay}

        async def say(claims: Any) -> object:
            return await claims.settle(held.claim, written, passage, detail)

        if cut and not how.bad:
            self.walk.step(lambda: self.walk.subject.cut(held.process, say), lambda: None)
        name = self.walk.world.processes[held.process].name
        self.walk.step(
            lambda: say(self.walk.subject.claims[held.process]),
            lambda: self.walk.reference.settle(held.claim, written, passage, name, detail),
        )

    @rule(process=PROCESSES, lanes=LANE_SETS, seconds=SECONDS, how=SETTLINGS)
    def attempt(self, process: int, lanes: tuple[str, ...], seconds: float, how: Settling) -> None:
        """Claim, work for a while, settle."""
        made = len(self.walk.held)
        self.claim(process, lanes)
        if len(self.walk.held) > made:
            self.advance(seconds)
            self.settle(back=0, fitting=False, how=how, cut=False)

    @rule(process=PROCESSES, times=st.integers(2, 4), ending=st.sampled_from(["failed", "reached"]))
    def again_and_again(self, process: int, times: int, ending: str) -> None:
        """Come to the same end without a pause: the failures run out, or the milestones."""
        for _ in range(times):
            made = len(self.walk.held)
            self.claim(process, EVERY_LANE)
            if len(self.walk.held) > made:
                self.settle(back=0, fitting=False, how=Settling(ending=ending), cut=False)

    @precondition(lambda self: self.walk.tokens)
    @rule(back=BACK, process=PROCESSES, cut=st.booleans())
    def give_back(self, back: int, process: int, *, cut: bool) -> None:
        """Give a claim back by its token, whether it was ever made or not."""
        token = nth(self.walk.tokens, back)

        async def say(claims: Any) -> object:
            return await claims.give_back(token, "it was lost")

        if cut:
            self.walk.step(lambda: self.walk.subject.cut(process, say), lambda: None)
        name = self.walk.world.processes[process].name
        self.walk.step(
            lambda: say(self.walk.subject.claims[process]),
            lambda: self.walk.reference.give_back(token, name, "it was lost"),
        )

    @rule(process=PROCESSES)
    def claim_cut(self, process: int) -> None:
        """Let a claim come to nothing before its commit; its token may be given back, or arrive late."""
        token = self.walk.new_token()

        async def say(claims: Any) -> object:
            return await claims.claim(token, EVERY_LANE)

        self.walk.step(lambda: self.walk.subject.cut(process, say), lambda: None)

    @rule()
    def wake(self) -> None:
        """Wake what has come due."""
        self.walk.step(self.walk.subject.claims[0].wake, self.walk.reference.wake)

    @rule(back=BACK)
    def ask_for_last_failure(self, back: int) -> None:
        """Ask how the claim before this one ended."""
        if not self.walk.held:
            return
        claim = nth(self.walk.held, back).claim
        self.walk.step(
            lambda: self.walk.subject.claims[0].last_failure(claim),
            lambda: self.walk.reference.last_failure(claim),
        )

    @rule(back=BACK)
    def read(self, back: int) -> None:
        """Read a record."""
        record_id = nth(self.walk.records, back)
        row = self.walk.reference.read(record_id)
        seen = self.walk.portal(lambda: self.walk.subject.claims[0].read(record_id))
        if isinstance(row, NotFound):
            assert seen == row
            return
        assert without_times(seen) == without_times(row.as_record())

    # People and time

    @rule(back=BACK, fitting=FITTING, verb=VERBS, asker=ASKERS)
    def person(self, *, back: int, fitting: bool, verb: str, asker: str) -> None:
        """Stop, lift, delete or undelete, also what is none of one's own."""
        fit = [each for each in self.walk.records if fits(verb, self.walk.reference.rows[each])]
        record_id = nth(fit if fitting and fit else self.walk.records, back)
        mine = self.walk.reference.rows[record_id].owner_id
        [other] = [each for each in self.walk.world.owners if each != mine]
        owner_id = {"service": None, "owner": mine, "stranger": other}[asker]
        self.walk.step(
            lambda: self.walk.subject.person(verb, record_id, owner_id, asker),
            lambda: getattr(self.walk.reference, verb)(record_id, owner_id, asker),
        )

    @rule(seconds=SECONDS)
    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.walk.now += seconds
        self.walk.step(lambda: self.walk.subject.advance(seconds), lambda: None)

"""The ways an attempt goes when nothing disturbs it, each on real parts: what every fault is tried on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import trio
from attrs import evolve, field, frozen

from daemon.settings import WorkSettings
from stages.stage import Outcome, Stage, Tools
from storage import owner
from storage.claims import Settled
from storage.ending import Deferred, Failed, Hopeless, Reached
from storage.errors import DatabaseUnavailable, StageFailed
from storage.owner import Verdict
from storage.record import Milestone, Record, StopCode
from tests.builders import Queue, passage_of
from tests.daemon.assembly import SETTINGS, House, Play, Told, a_house, answer, fail, hang
from tests.daemon.door import Proceed
from tests.faults.proof import FINDINGS, accepted

HOLDS: Final = FINDINGS[Milestone.TRANSCRIBE]


def _hanging(queue: Queue) -> Play:
    del queue
    return hang


def _told(outcome: Outcome) -> Callable[[Queue], Play]:
    return lambda _: answer(outcome)


def _failing(queue: Queue) -> Play:
    del queue
    return fail(StageFailed("broken"))


def _stopped_under_it(queue: Queue) -> Play:
    async def play(record: Record, tools: Tools) -> Outcome:
        del tools
        assert await owner.stop(queue.database, record.id, queue.owner, "anna") is Verdict.DONE
        return Reached(FINDINGS[record.milestone])

    return play


@frozen(kw_only=True)
class Course:
    """A way an attempt goes; `ends` is the kind of its last event, `play` is made with a wire of its own."""

    ends: str
    milestone: Milestone = Milestone.CREATED
    play: Callable[[Queue], Play] = _hanging
    stage: dict[str, Any] = field(factory=dict)
    exhausted: bool = False

    async def record(self, queue: Queue) -> UUID:
        """Make the record whose attempt this is."""
        record_id = await accepted(queue, self.milestone)
        if self.exhausted:
            claim = await queue.claim()
            ended = await queue.claims.settle(claim, Failed("broken"), passage_of(self.milestone), {})
            assert ended == Settled()
        return record_id

    def house(self, queue: Queue, folder: Path, clean: Queue, record_id: UUID) -> House:
        """Put up a service that works on `queue`; what its stage does to the record goes by `clean`."""
        line: list[Stage] = [Told(takes=at) for at in list(Milestone)[:-1]]
        at = list(Milestone).index(self.milestone)
        line[at] = Told(takes=self.milestone, play=self.play(clean), **self.stage)
        limit = 1 if self.exhausted else SETTINGS.failures_limit
        settings: WorkSettings = evolve(SETTINGS, failures_limit=limit, poll_seconds=0.05)
        limited = evolve(queue, claims=evolve(queue.claims, failures_limit=limit))
        house = a_house(limited, folder, line, settings=settings)
        house.store.record_folder(record_id).mkdir()
        return house


COURSES: Final = {
    "reached": Course(ends="reached", milestone=Milestone.TRANSCRIBE, play=_told(Reached(HOLDS))),
    "deferred": Course(ends="deferred", milestone=Milestone.TRANSCRIBE, play=_told(Deferred(0, HOLDS))),
    "overdue": Course(
        ends="stopped",
        milestone=Milestone.TRANSCRIBE,
        play=_told(Deferred(60, HOLDS)),
        stage={"whole_seconds": 1.0},
    ),
    "hopeless": Course(ends="stopped", play=_told(Hopeless(StopCode.SILENT, "nothing said"))),
    "failed": Course(ends="failed", play=_failing),
    "timed out": Course(ends="timed_out", stage={"seconds": 0.02}),
    "given back": Course(ends="given_back"),
    "exhausted": Course(ends="stopped", exhausted=True),
    "lost": Course(ends="stopped", play=_stopped_under_it),
}


async def attempt(house: House, course: Course) -> None:
    """Have one worker work until a settle is answered, or a stop cuts it off where that is the course.

    It asks for a claim once: when no answer comes to that, the stop comes, too.
    """

    async def asking(proceed: Proceed) -> object:
        try:
            return await proceed()
        except DatabaseUnavailable:
            house.stop.ask("the answer was lost")
            raise

    async def reading(proceed: Proceed) -> object:
        record = await asking(proceed)
        if course.ends == "given_back":
            house.stop.ask("in the middle of the attempt")
            work.cancel_scope.cancel(reason="the service stops")
        return record

    async def settling(proceed: Proceed) -> object:
        settled = await proceed()
        if not house.stop.asked:
            house.stop.ask("one attempt is enough")
        return settled

    house.door.always |= {"claim": asking, "read": reading, "last_failure": asking, "settle": settling}
    async with trio.open_nursery() as work:
        work.start_soon(house.workers.work, "worker")

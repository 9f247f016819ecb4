"""transcribe -> done: the operation is advanced, a step per claim, until it is finished."""

from attrs import field, frozen

from stages.recognisers.recogniser import Finished, InProgress, Recogniser
from stages.stage import Deferred, Hopeless, Outcome, Reached, Tools
from storage.errors import StageFailed
from storage.record import Advance, Milestone, Record


class ForeignOperation(StageFailed):
    """The record's operation cannot be advanced by this recogniser."""


@frozen(kw_only=True)
class AdvanceRecognition:
    """Advances; each step's segments and progress are saved by the settle of its claim."""

    recogniser: Recogniser
    lease_seconds: float
    name: str = "advance_recognition"
    takes: Milestone = Milestone.TRANSCRIBE
    gives: Milestone = Milestone.DONE
    lane: str = field(init=False)

    @lane.default
    def _lane_of_the_recogniser(self) -> str:
        return self.recogniser.name

    def time_limit(self, record: Record) -> float:
        """Return the recogniser's own limit on one call."""
        return self.recogniser.time_limit(record)

    def milestone_limit(self, record: Record) -> float:
        """Return the recogniser's own limit on the whole."""
        return self.recogniser.whole_limit(record)

    async def work(self, record: Record, tools: Tools) -> Outcome:
        """Take the operation one step on."""
        if record.operation is None or record.recogniser != self.recogniser.name:
            beginner = record.recogniser or "nobody"
            raise ForeignOperation(f"the recognition was begun by {beginner}, not by {self.recogniser.name}")
        step = await self.recogniser.advance(record, record.operation, tools)
        match step:
            case InProgress():
                return Deferred(step.delay, _findings(step), step.state)
            case Finished():
                return Reached(_findings(step))
            case Hopeless():
                return step

    async def check_means(self) -> None:
        """Raise MeansAway when the recogniser is away."""
        await self.recogniser.check_means()


def _findings(step: InProgress | Finished) -> Advance:
    return Advance(
        operation=step.operation,
        recognised_seconds=step.recognised_seconds,
        found_language=step.found_language,
        segments=step.segments,
        anew=isinstance(step, InProgress) and step.anew,
    )

"""converted -> transcribe: the recogniser begins an operation on the recording."""

from attrs import field, frozen

from stages.recognisers.recogniser import Recogniser
from stages.stage import Hopeless, Outcome, Reached, Tools
from storage.record import Milestone, OperationBegun, Record


@frozen(kw_only=True)
class BeginRecognition:
    """Begins; for a recogniser on this machine that is a word in the row, for a remote one an upload."""

    recogniser: Recogniser
    lease_seconds: float
    name: str = "begin_recognition"
    takes: Milestone = Milestone.CONVERTED
    gives: Milestone = Milestone.TRANSCRIBE
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
        """Begin the operation."""
        begun = await self.recogniser.begin(record, tools)
        if isinstance(begun, Hopeless):
            return begun
        return Reached(OperationBegun(recogniser=self.recogniser.name, operation=begun))

    async def check_means(self) -> None:
        """Raise MeansAway when the recogniser is away."""
        await self.recogniser.check_means()

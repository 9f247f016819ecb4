"""created -> converted: whatever the recording is, it becomes 16 kHz samples on its own line of time."""

import structlog
from attrs import frozen

from stages.media.converter import Converter
from stages.media.messages import Finished
from stages.stage import Hopeless, Outcome, Reached, Tools
from storage.record import Conversion, Milestone, Record

log = structlog.get_logger()

_TRIES_OF_TIME = 10  # how many full time limits the milestone is worth


@frozen(kw_only=True)
class Convert:
    """The converting stage."""

    converter: Converter
    lease_seconds: float
    name: str = "convert"
    takes: Milestone = Milestone.CREATED
    gives: Milestone = Milestone.CONVERTED
    lane: str = "convert"

    def time_limit(self, record: Record) -> float:
        """Return the seconds that one conversion may take."""
        return self.converter.time_limit(record)

    def milestone_limit(self, record: Record) -> float:
        """Return the seconds of work after which more tries of this kind make no sense."""
        return _TRIES_OF_TIME * self.time_limit(record)

    async def work(self, record: Record, tools: Tools) -> Outcome:
        """Decode the source into the attempt's own folder."""
        converted = await self.converter.convert(record, tools)
        if isinstance(converted, Hopeless):
            return converted
        copy, answer = converted
        return Reached(_conversion(answer, tools.publish(copy), record))

    async def check_means(self) -> None:
        """Raise MeansAway while the store's disk has no room for a copy."""
        await self.converter.check_means()


def _conversion(answer: Finished, audio_path: str, record: Record) -> Conversion:
    log.info(
        "audio.converted",
        record=str(record.id),
        codec=answer.codec,
        track=answer.track,
        channels=answer.channels,
        sides=answer.sides,
        likeness=answer.likeness,
        declared_seconds=answer.declared_seconds,
        decoded_seconds=answer.decoded_seconds,
        bad_packets=answer.bad_packets,
        cautions=[caution.sentence for caution in answer.cautions],
    )
    return Conversion(
        audio_path=audio_path,
        declared_seconds=answer.declared_seconds,
        decoded_seconds=answer.decoded_seconds,
        audio_warnings=tuple(caution.code for caution in answer.cautions),
    )

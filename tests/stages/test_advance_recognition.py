"""Each step of a recognition is saved as it comes, whoever recognises and however long it takes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from psycopg.types.json import Jsonb

from daemon.children import open_children
from stages.advance_recognition import AdvanceRecognition, ForeignOperation
from stages.recognisers.recogniser import Finished, InProgress
from stages.recognisers.whisper import SliceFailed
from stages.stage import Deferred, Hopeless, Outcome, Reached, Tools
from storage.claim import Claim
from storage.claims import Settled
from storage.database import Database
from storage.ending import Failed
from storage.record import Advance, Milestone, Record, Segment, StopCode
from tests.builders import FAILURES_LIMIT, a_queue
from tests.stages.nouns import a_record, a_workplace

HELLO = Segment(slice=0, number=0, start=0.5, end=1.5, text="Hello.")


class Elsewhere:
    """A recogniser somewhere else: it is asked now and then, and is done when it says so."""

    name = "elsewhere"

    async def begin(self, record: Record, tools: Tools) -> dict[str, Any] | Hopeless:  # noqa: ARG002 - the protocol's
        """Begin."""
        return {"remote_id": "r-1", "asked": 0}

    async def advance(
        self,
        record: Record,  # noqa: ARG002 - the protocol's
        operation: dict[str, Any],
        tools: Tools,  # noqa: ARG002 - the protocol's
    ) -> InProgress | Finished | Hopeless:
        """Ask: it is working, then done; another id is refused."""
        if operation["remote_id"] != "r-1":
            return Hopeless(StopCode.RECOGNISER_REFUSED, "404: no such operation")
        operation = {**operation, "asked": operation["asked"] + 1}
        if operation["asked"] < 3:
            return InProgress(
                operation=operation,
                recognised_seconds=0.0,
                found_language=None,
                segments=(),
                delay=15.0,
                state="running at the other side",
            )
        return Finished(operation=operation, recognised_seconds=60.0, found_language="en", segments=(HELLO,))

    def time_limit(self, record: Record) -> float:  # noqa: ARG002 - the protocol's
        """An answer's time."""
        return 30.0

    def whole_limit(self, record: Record) -> float:  # noqa: ARG002 - the protocol's
        """A day."""
        return 86_400.0

    async def check_means(self) -> None:
        """It is always there."""


class Lame(Elsewhere):
    """A recogniser that never gets past its second slice."""

    name = "whisper"

    async def advance(
        self,
        record: Record,  # noqa: ARG002 - the protocol's
        operation: dict[str, Any],
        tools: Tools,  # noqa: ARG002 - the protocol's
    ) -> InProgress | Finished | Hopeless:
        """Do the first slice, and fail at the second."""
        if operation["slice"] == 1:
            raise SliceFailed("the slice at 120.0 s was not recognised")
        return InProgress(
            operation={"slice": 1},
            recognised_seconds=120.0,
            found_language="en",
            segments=(HELLO,),
            delay=0.0,
            state="120 of 600 s recognised",
        )


STAGE = AdvanceRecognition(recogniser=Elsewhere(), lease_seconds=60)


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[Tools]:
    """What an attempt is handed."""
    async with open_children(cpu_threads=1) as children:
        yield a_workplace(None, children, root=tmp_path / "store")


async def test_a_remote_operation_defers_until_it_is_finished(tools: Tools) -> None:
    """With the delay and the words of the other side; its id is kept with the record."""
    record = a_record(recogniser="elsewhere", operation={"remote_id": "r-1", "asked": 0})
    for asked in (1, 2):
        outcome = await STAGE.work(record, tools)
        assert isinstance(outcome, Deferred)
        assert (outcome.delay, outcome.state) == (15.0, "running at the other side")
        assert isinstance(outcome.findings, Advance)
        assert outcome.findings.operation == {"remote_id": "r-1", "asked": asked}
        record = evolve(record, operation=outcome.findings.operation)
    assert await STAGE.work(record, tools) == Reached(
        Advance(
            operation={"remote_id": "r-1", "asked": 3},
            recognised_seconds=60.0,
            found_language="en",
            segments=(HELLO,),
            anew=False,
        )
    )


async def test_a_refusal_of_the_recogniser_is_passed_on(tools: Tools) -> None:
    """As it is: no retry can help."""
    record = a_record(recogniser="elsewhere", operation={"remote_id": "r-2", "asked": 0})
    assert await STAGE.work(record, tools) == Hopeless(StopCode.RECOGNISER_REFUSED, "404: no such operation")


@pytest.mark.parametrize(
    ("recogniser", "operation"), [("whisper", {"next_sample": 0}), ("elsewhere", None), (None, None)]
)
async def test_an_operation_of_another_recogniser_is_not_taken_for_its_own(
    tools: Tools,
    recogniser: str | None,
    operation: dict[str, Any] | None,
) -> None:
    """The settings may have changed since it was begun."""
    with pytest.raises(ForeignOperation, match="was begun by"):
        await STAGE.work(a_record(recogniser=recogniser, operation=operation), tools)


def test_the_stage_is_its_recognisers() -> None:
    """Its lane and its limits."""
    record = a_record()
    assert (STAGE.takes, STAGE.gives) == (Milestone.TRANSCRIBE, Milestone.DONE)
    assert STAGE.lane == "elsewhere"
    assert STAGE.time_limit(record) == 30.0
    assert STAGE.milestone_limit(record) == 86_400.0


async def test_s_r6_a_slice_that_keeps_failing_stops_the_record(database: Database, tools: Tools) -> None:
    """With the slices before it kept; the stage is run as often as the limit says, and it is never done."""
    stage = AdvanceRecognition(recogniser=Lame(), lease_seconds=60)
    queue = await a_queue(database)
    record_id = await queue.record(
        Milestone.TRANSCRIBE,
        recogniser="whisper",
        operation=Jsonb({"slice": 0}),
        audio_path="records/x/a.w64",
    )
    runs = 0
    while isinstance(claim := await queue.ask(), Claim):
        record = await queue.claims.read(record_id)
        assert isinstance(record, Record)
        if record.failures > FAILURES_LIMIT:
            await queue.settle(claim, Hopeless(StopCode.ATTEMPTS_EXHAUSTED, "it failed too often"))
            continue
        runs += 1
        ending: Outcome | Failed
        try:
            ending = await stage.work(record, tools)
        except SliceFailed as error:
            ending = Failed(str(error))
        assert isinstance(await queue.settle(claim, ending), Settled)
    row = await queue.row(record_id)
    assert runs == 1 + FAILURES_LIMIT
    assert (row["milestone"], row["stop_code"]) == (Milestone.TRANSCRIBE, StopCode.ATTEMPTS_EXHAUSTED)
    assert [segment["text"] for segment in await queue.segments(record_id)] == ["Hello."]
    assert row["recognised_seconds"] == 120.0

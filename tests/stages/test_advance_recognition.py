"""Each step of a recognition is saved as it comes, whoever recognises and however long it takes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from daemon.children import open_children
from stages.advance_recognition import AdvanceRecognition, ForeignOperation
from stages.recognisers.recogniser import Finished, InProgress
from stages.stage import Deferred, Hopeless, Reached, Tools
from storage.record import Advance, Milestone, Record, Segment, StopCode
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

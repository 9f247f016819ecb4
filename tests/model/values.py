"""The values that the machine of `test_protocol` draws from, and what it makes of them.

All times are hundreds of seconds, and all limits lie between them: real time passes too, a little.
"""

from collections.abc import Mapping
from typing import Final

import attrs
from hypothesis import strategies as st

from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.record import Findings, Milestone, OperationBegun, StopCode
from tests.builders import EVERY_LANE, FOUND, Written, advance, conversion, segment
from tests.model.row import Row

PROCESSES = st.integers(0, 2)
LANE_SETS = st.sampled_from([EVERY_LANE, EVERY_LANE, EVERY_LANE, ("convert",), ("whisper",), ()])
BACK = st.integers(0, 6)  # how far back from the newest one
SECONDS = st.sampled_from([100.0, 200.0, 400.0, 700.0, 1000.0])
VERBS = st.sampled_from(["stop", "stop", "lift", "lift", "delete", "undelete", "undelete"])
ASKERS = st.sampled_from(["service", "owner", "owner", "stranger"])
FITTING = st.sampled_from([True, True, False])  # whether something is done where it has an effect

UNSTORABLE: Final[Mapping[Milestone, Findings]] = {
    Milestone.CREATED: conversion("records/\0"),
    Milestone.CONVERTED: OperationBegun(recogniser="whisper", operation={"state": "\0"}),
    Milestone.TRANSCRIBE: attrs.evolve(advance(), found_language="\0"),
}


@attrs.frozen(kw_only=True)
class Settling:
    """How a claim is settled, in seconds; `bad` names what of it cannot be stored."""

    ending: str
    delay: float = 0.0
    retry: float = 0.0
    limit: float = 100_000.0
    bad: str = ""
    slice_: int = 0

    def at(self, milestone: Milestone) -> Written:
        """Return the ending at that milestone."""
        found = (UNSTORABLE if self.bad == "value" else FOUND)[milestone]
        if self.bad != "value" and milestone is Milestone.TRANSCRIBE:
            last = segment(1, "last", slice_=self.slice_)
            last = attrs.evolve(last, start=9.0, end=1.0) if self.bad == "segment" else last
            found = advance(segment(0, "first", slice_=self.slice_), last)
        reason = "no \0 sound" if self.bad == "value" else "no sound"
        endings: dict[str, Written] = {
            "reached": Reached(found),
            "deferred": Deferred(self.delay, found, "so far"),
            "hopeless": Hopeless(StopCode.NO_AUDIO, reason),
            "hopeless, with findings": Hopeless(StopCode.INCOMPLETE_RECOGNITION, reason, found),
            "failed": Failed("a cause"),
            "timed_out": TimedOut("a cause"),
            "given_back": GivenBack("a cause"),
        }
        return endings[self.ending]


DELAYS = st.sampled_from([0.0, 0.0, 200.0, 400.0])
SETTLINGS = st.builds(
    Settling,
    ending=st.sampled_from(
        ["reached"] * 3 + ["deferred"] * 2 + ["hopeless"] + ["failed"] * 2 + ["timed_out", "given_back"]
    ),
    delay=DELAYS,
    retry=DELAYS,
    limit=st.sampled_from([50.0, 350.0, 950.0, 100_000.0, 100_000.0]),
    slice_=st.integers(0, 1),
    bad=st.sampled_from([""] * 12 + ["value", "segment", "detail"]),
)


def fits(verb: str, row: Row) -> bool:
    """True for a record on which a person's verb has an effect."""
    if verb == "undelete":
        return row.deleted_at is not None
    if verb == "lift":
        return row.stop_code is not None and row.deleted_at is None
    return row.in_work

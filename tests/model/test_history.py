"""The checker of histories: a kept protocol passes, and each breach that can be told from events is told."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from attrs import evolve

from storage.record import Milestone
from tests.model.history import Event, faults, standings
from tests.model.order import order_seen

START = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = 60.0


class Story:
    """Writes a history as the database would, event by event."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.record = uuid4()
        self.milestone = "created"
        self.seconds = 0.0

    def tell(
        self, kind: str, token: UUID | None = None, *, settles: bool = False, **detail: Any
    ) -> UUID | None:
        """Add an event, a second after the last one."""
        self.seconds += 1
        event = Event(
            id=len(self.events) + 1,
            record_id=self.record,
            at=START + timedelta(seconds=self.seconds),
            kind=kind,
            milestone=self.milestone,
            token=token,
            settles=settles,
            by="a test",
            detail=detail,
        )
        self.events.append(event)
        return token

    def accept(self) -> "Story":
        """Begin a record's history."""
        self.record, self.milestone = uuid4(), "created"
        self.tell("accepted")
        return self

    def claim(self, failures: int = 1, token: UUID | None = None) -> UUID:
        """Claim it."""
        token = token or uuid4()
        self.tell("claimed", token, failures=failures, lease_seconds=LEASE)
        return token

    def end(self, token: UUID, kind: str, **detail: Any) -> None:
        """Settle it."""
        if kind == "reached":
            self.milestone = list(Milestone)[list(Milestone).index(Milestone(self.milestone)) + 1]
        self.tell(kind, token, settles=True, **detail)

    def wait(self, seconds: float) -> "Story":
        """Let time pass."""
        self.seconds += seconds
        return self


def whole() -> Story:
    """A history with everything in it that is allowed."""
    story = Story().accept()
    story.end(story.claim(1), "failed")
    story.end(story.claim(2), "given_back")
    story.end(story.claim(2), "timed_out")
    story.claim(3)
    story.wait(LEASE)
    story.end(story.claim(4), "reached")
    story.tell("edited")
    story.end(story.claim(1), "deferred", delay=0)
    story.claim(1)
    story.tell("stopped", code="stopped_by_owner", reason="on request")
    story.tell("deleted")
    story.tell("undeleted")
    story.tell("lifted")
    story.claim(1)
    story.tell("deleted")
    story.tell("undeleted")
    story.end(story.claim(1), "stopped", code="overdue", reason="too long", failures_reset=True)
    story.tell("lifted")
    story.end(story.claim(1), "reached")
    story.end(story.claim(1), "reached")
    story.tell("deleted")
    return story


def test_a_kept_protocol_has_no_faults() -> None:
    """Everything that may happen to a record, in one history; and it says where the record stands."""
    story = whole()
    assert faults(story.events) == []
    standing = standings(story.events)[story.record]
    assert (standing.milestone, standing.count, standing.holder) == (Milestone.DONE, 0, None)
    assert standing.deleted
    assert not standing.in_work


def _token_claimed_twice(story: Story) -> None:
    story.end(token := story.claim(), "failed")
    story.claim(2, token)


def _token_shared_by_records(story: Story) -> None:
    token = story.claim()
    story.accept().claim(1, token)


def _two_settles_of_one_token(story: Story) -> None:
    token = story.claim()
    story.end(token, "failed")
    story.end(token, "failed")


def _settle_after_reissue(story: Story) -> None:
    first = story.claim()
    story.wait(LEASE).claim(2)
    story.end(first, "failed")


def _settle_after_stop(story: Story) -> None:
    token = story.claim()
    story.tell("stopped", code="stopped_by_owner", reason="on request")
    story.end(token, "failed")


def _settle_after_deletion(story: Story) -> None:
    token = story.claim()
    story.tell("deleted")
    story.end(token, "reached")


def _settle_of_another_record(story: Story) -> None:
    token = story.claim()
    story.accept().end(token, "failed")


def _claim_under_a_lease(story: Story) -> None:
    story.claim()
    story.wait(LEASE / 2).claim(2)


def _claim_of_the_stopped(story: Story) -> None:
    story.tell("stopped", code="stopped_by_owner", reason="on request")
    story.claim()


def _claim_of_the_deleted(story: Story) -> None:
    story.tell("deleted")
    story.claim()


def _claim_of_the_done(story: Story) -> None:
    for _ in range(3):
        story.end(story.claim(), "reached")
    story.claim()


def _milestone_skipped(story: Story) -> None:
    token = story.claim()
    story.milestone = "converted"
    story.end(token, "reached")


def _milestone_backwards(story: Story) -> None:
    story.end(story.claim(), "reached")
    story.milestone = "created"
    story.claim()


def _milestone_moved_by_a_failure(story: Story) -> None:
    token = story.claim()
    story.milestone = "converted"
    story.end(token, "failed")


def _count_not_raised(story: Story) -> None:
    story.claim(0)


def _count_raised_twice(story: Story) -> None:
    story.end(story.claim(1), "failed")
    story.claim(3)


def _count_kept_by_a_give_back(story: Story) -> None:
    story.end(story.claim(1), "given_back")
    story.claim(2)


def _count_not_reset(story: Story) -> None:
    story.end(story.claim(1), "deferred", delay=0)
    story.claim(2)


def _count_forgotten(story: Story) -> None:
    story.end(story.claim(1), "failed")
    story.claim(1)


def _count_kept_by_a_lift(story: Story) -> None:
    story.end(story.claim(1), "failed")
    story.tell("stopped", code="stopped_by_owner", reason="on request")
    story.tell("lifted")
    story.claim(2)


def _count_kept_by_a_deletion(story: Story) -> None:
    story.claim(1)
    story.tell("deleted")
    story.tell("undeleted")
    story.claim(2)


def _lift_of_what_is_not_stopped(story: Story) -> None:
    story.claim()
    story.tell("lifted")


def _double_lift(story: Story) -> None:
    story.tell("stopped", code="stopped_by_owner", reason="on request")
    story.tell("lifted")
    story.tell("lifted")


def _double_stop(story: Story) -> None:
    story.tell("stopped", code="stopped_by_owner", reason="on request")
    story.tell("stopped", code="stopped_by_owner", reason="on request")


def _stop_without_a_reason(story: Story) -> None:
    story.tell("stopped", code="stopped_by_owner")


def _stop_by_a_holder_that_is_none(story: Story) -> None:
    story.tell("stopped", uuid4(), settles=True, code="overdue", reason="too long")


def _stop_by_a_holder_that_does_not_settle(story: Story) -> None:
    story.tell("stopped", story.claim(), code="overdue", reason="too long")


def _double_deletion(story: Story) -> None:
    story.tell("deleted")
    story.tell("deleted")


def _undeletion_of_what_is_there(story: Story) -> None:
    story.tell("undeleted")


def _an_end_that_does_not_settle(story: Story) -> None:
    story.tell("failed", story.claim())


def _an_end_without_a_claim(story: Story) -> None:
    story.tell("failed")


def _accepted_twice(story: Story) -> None:
    story.tell("accepted")


def _a_history_without_its_beginning(story: Story) -> None:
    story.events.clear()
    story.claim()


BREACHES: dict[Callable[[Story], None], str] = {
    _token_claimed_twice: "was claimed before",
    _token_shared_by_records: "was claimed before",
    _two_settles_of_one_token: "was settled before",
    _settle_after_reissue: "ends what it does not hold",
    _settle_after_stop: "ends what it does not hold",
    _settle_after_deletion: "ends what it does not hold",
    _settle_of_another_record: "ends what it does not hold",
    _claim_under_a_lease: "claimed while token",
    _claim_of_the_stopped: "done, stopped or deleted was claimed",
    _claim_of_the_deleted: "done, stopped or deleted was claimed",
    _claim_of_the_done: "done, stopped or deleted was claimed",
    _milestone_skipped: "goes from created to transcribe",
    _milestone_backwards: "told at created, where the record stands at converted",
    _milestone_moved_by_a_failure: "told at converted, where the record stands at created",
    _count_not_raised: "the count says 0 after 0",
    _count_raised_twice: "the count says 3 after 1",
    _count_kept_by_a_give_back: "the count says 2 after 0",
    _count_not_reset: "the count says 2 after 0",
    _count_forgotten: "the count says 1 after 1",
    _count_kept_by_a_lift: "the count says 2 after 0",
    _count_kept_by_a_deletion: "the count says 2 after 0",
    _lift_of_what_is_not_stopped: "was lifted",
    _double_lift: "was lifted",
    _double_stop: "done, stopped or deleted was stopped",
    _stop_without_a_reason: "a stop without its reason",
    _stop_by_a_holder_that_is_none: "ends what it does not hold",
    _stop_by_a_holder_that_does_not_settle: "does not settle the claim",
    _double_deletion: "deleted where that changes nothing",
    _undeletion_of_what_is_there: "undeleted where that changes nothing",
    _an_end_that_does_not_settle: "does not settle it",
    _an_end_without_a_claim: "belongs to no claim where it must",
    _accepted_twice: "nothing is accepted twice",
    _a_history_without_its_beginning: "begins with its acceptance",
}


@pytest.mark.parametrize(
    ("plant", "sentence"), BREACHES.items(), ids=[plant.__name__[1:] for plant in BREACHES]
)
def test_each_breach_is_found(plant: Callable[[Story], None], sentence: str) -> None:
    """A breach planted in a kept history is told, in words that name it."""
    story = Story().accept()
    plant(story)
    found = faults(story.events)
    assert any(sentence in fault for fault in found), found


def test_the_slack_covers_a_clock_that_was_set_back() -> None:
    """A lease renewed under an earlier clock may end before the first one would have."""
    story = Story().accept()
    story.claim()
    story.wait(LEASE - 30).claim(2)
    assert faults(story.events)
    assert faults(story.events, slack_seconds=30) == []


def test_the_order_of_ids_is_the_order_of_the_events() -> None:
    """However they were read."""
    assert faults(whole().events[::-1]) == []


def queue_of_two() -> tuple[Story, UUID, UUID]:
    """Two records, the first accepted one first, waiting for long."""
    story = Story()
    first, second = story.accept().record, story.accept().record
    story.wait(60)
    return story, first, second


def test_the_order_is_found_right() -> None:
    """The one that came first is claimed first."""
    story, first, second = queue_of_two()
    story.record = first
    story.claim()
    story.record = second
    story.claim()
    seen = order_seen(story.events, failures_limit=3, margin_seconds=0.1)
    assert (seen.decided, seen.faults) == (1, [])


def test_a_claim_out_of_order_is_found() -> None:
    """The one that came second was claimed while the first one waited."""
    story, first, second = queue_of_two()
    story.record = second
    story.claim()
    story.record = first
    story.wait(60).claim()
    [fault] = order_seen(story.events, failures_limit=3).faults
    assert f"record {second} was claimed before {first}" in fault
    late = {first: START + timedelta(days=1), second: START}
    assert order_seen(story.events, failures_limit=3, created_at=late).faults == []


def test_only_what_is_decided_by_the_events_is_judged() -> None:
    """Neither what was claimed at about the same time, nor another store's, lane's or an exhausted record."""
    story, first, second = queue_of_two()
    story.record = second
    story.claim()
    story.record = first
    story.claim()
    assert order_seen(story.events, failures_limit=3).faults == []
    taken, other = story.events[-2], story.events[-1]
    events = [*story.events[:-1], evolve(other, at=other.at + timedelta(seconds=60))]
    assert order_seen(events, failures_limit=3).faults
    assert order_seen(events, failures_limit=3, stores={first: 1, second: 2}).faults == []
    exhausted = [evolve(each, detail={"failures": 4}) if each is taken else each for each in events]
    assert order_seen(exhausted, failures_limit=3).faults == []
    elsewhere = [evolve(each, milestone="converted") if each is taken else each for each in events]
    assert order_seen(elsewhere, failures_limit=3).faults == []


@pytest.mark.parametrize("kind", ["failed", "timed_out", "stopped", "deleted"])
def test_what_may_not_have_been_ready_is_not_judged(kind: str) -> None:
    """No event tells how long a failed record waits, and the stopped and the deleted ones wait for ever."""
    story, first, second = queue_of_two()
    story.record = first
    story.tell(kind)
    story.record = second
    story.wait(60).claim()
    story.record = first
    story.wait(60).tell("edited")
    assert order_seen(story.events, failures_limit=3).faults == []

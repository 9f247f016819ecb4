"""For each reason that a record is not claimed: the condition that excludes it, and a sentence."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from attrs import evolve

from daemon.explain import cause_of, explain
from storage.daemons import LaneSign
from storage.explaining import Attempt, Daemon, Facts
from storage.record import Milestone, Stop, StopCode
from tests.builders import NOON

RECORD = UUID("0197a1c2-7f00-7000-8000-000000000001")
STORE = UUID("0197a1c2-7f00-7000-8000-000000000002")
LATER = NOON + timedelta(seconds=40)
OF_DAEMONS = ("a daemon claims", "store mounted", "stage known", "lane free")


def a_daemon(lane: LaneSign | None = None, **changes: Any) -> Daemon:
    """Return a daemon that would claim the record."""
    given: dict[str, Any] = {
        "run": "host:1:ab",
        "host": "host",
        "pid": 1,
        "started_at": NOON,
        "beat_at": NOON,
        "silent_seconds": 3.0,
        "workers": 3,
        "failures_limit": 5,
        "lanes": (lane or LaneSign(name="whisper", slots=1, busy=0, closed_because=None),),
        "is_alive": True,
        "has_store": True,
        "has_stage": True,
        "has_free_lane": True,
        "needs_no_lane": False,
    }
    return Daemon(**(given | changes))


def some_facts(**changes: Any) -> Facts:
    """Return the facts of a record that is ready and the next."""
    given: dict[str, Any] = {
        "now": NOON,
        "id": RECORD,
        "owner": "anna",
        "filename": "talk.ogg",
        "created_at": NOON,
        "milestone": Milestone.TRANSCRIBE,
        "milestone_since": NOON,
        "milestone_seconds": 10.0,
        "lane": "whisper",
        "store_id": STORE,
        "failures": 0,
        "wake_at": None,
        "claimed_by": None,
        "claimed_at": None,
        "lease_seconds": None,
        "lease_until": None,
        "stop": None,
        "deleted_at": None,
        "ready_since": NOON,
        "ahead": 0,
        "is_not_stopped": True,
        "is_not_deleted": True,
        "is_not_done": True,
        "is_due": True,
        "is_not_held": True,
        "is_not_locked": True,
        "takes_writes": True,
        "daemons": (a_daemon(),),
        "attempts": (),
        "record": None,
    }
    return Facts(**(given | changes))


STOPPED = {
    "stop": Stop(code=StopCode.SILENT, reason="nobody spoke in 61 s", at=NOON, by="host:1:ab"),
    "is_not_stopped": False,
}
HELD = {
    "claimed_by": "host:1:ab",
    "claimed_at": NOON - timedelta(seconds=20),
    "lease_seconds": 60.0,
    "lease_until": LATER,
    "wake_at": LATER,
    "failures": 1,
    "is_due": False,
    "is_not_held": False,
    "ready_since": None,
    "ahead": None,
}
DEAD: dict[str, Any] = {"is_alive": False, "silent_seconds": 300.0}
BUSY = LaneSign(name="whisper", slots=1, busy=1, closed_because=None)
CLOSED = LaneSign(name="whisper", slots=1, busy=0, closed_because="the model base is missing")

CASES: dict[str, tuple[dict[str, Any], tuple[str, ...], str]] = {
    "next": ({}, (), "the next in lane whisper: whoever claims next takes it"),
    "queued": ({"ahead": 7}, (), "7 are before it in lane whisper"),
    "far behind": ({"ahead": 1000}, (), "1000 or more are before it"),
    "stopped": (STOPPED, ("not stopped",), f"lifts it with: rubezh records lift {RECORD}"),
    "deleted": (
        {"deleted_at": NOON, "is_not_deleted": False},
        ("not deleted",),
        f"rubezh records undelete {RECORD}",
    ),
    "done": ({"milestone": Milestone.DONE, "lane": None, "is_not_done": False}, ("not done",), "It is done"),
    "held": (HELD, ("due", "not held"), "being worked on by host:1:ab"),
    "deferred": ({"wake_at": LATER, "is_due": False}, ("due",), "for its stage to go on, and is due in 40 s"),
    "to be tried again": (
        {"wake_at": LATER, "is_due": False, "failures": 2},
        ("due",),
        "to be tried again after a failure, and is due in 40 s",
    ),
    "locked": ({"is_not_locked": False}, ("not locked",), "another transaction holds the row"),
    "read-only": ({"takes_writes": False}, ("database takes writes",), "the database is read-only"),
    "no daemon ever": ({"daemons": ()}, OF_DAEMONS, "no daemon is alive; start one"),
    "a dead daemon": ({"daemons": (a_daemon(**DEAD),)}, OF_DAEMONS, "heard from 0:05:00 ago"),
    "a stopping daemon": ({"daemons": (a_daemon(workers=0),)}, OF_DAEMONS, "it is stopping"),
    "another store": (
        {"daemons": (a_daemon(has_store=False),)},
        OF_DAEMONS[1:],
        f"no daemon that claims has mounted store {STORE}",
    ),
    "no stage": (
        {"daemons": (a_daemon(has_stage=False),)},
        OF_DAEMONS[2:],
        "no such daemon has a stage for records at transcribe",
    ),
    "busy": (
        {"daemons": (a_daemon(BUSY, has_free_lane=False),)},
        OF_DAEMONS[3:],
        "lane whisper of host:1:ab is busy, 1 of 1 slots",
    ),
    "closed": (
        {"daemons": (a_daemon(CLOSED, has_free_lane=False),)},
        OF_DAEMONS[3:],
        "lane whisper of host:1:ab is closed: the model base is missing",
    ),
    "no such lane": (
        {"lane": "yandex", "daemons": (a_daemon(has_free_lane=False),)},
        OF_DAEMONS[3:],
        "host:1:ab has no lane yandex",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_condition_that_excludes_a_record_is_named(case: str) -> None:
    """Those that do not hold, no other, and the sentence that a person needs."""
    changes, excluded, said = CASES[case]
    explanation = explain(some_facts(**changes), 600.0)
    assert explanation.excluded_by == excluded
    assert said in explanation.verdict
    assert all(each.why_not for each in explanation.conditions if not each.holds)


def test_an_exhausted_record_needs_no_lane() -> None:
    """It is claimed past a closed lane, and stopped; that is said."""
    daemon = a_daemon(CLOSED, has_free_lane=False, needs_no_lane=True)
    explanation = explain(some_facts(failures=5, daemons=(daemon,)), None)
    assert explanation.excluded_by == ()
    assert "Its failures have reached the limit of 5: the next claim stops it." in explanation.notes


def test_the_conditions_of_several_daemons_must_hold_for_one_of_them() -> None:
    """A lane that is free where the store is not mounted helps nobody."""
    with_the_lane = a_daemon(has_store=False)
    with_the_store = a_daemon(BUSY, run="other:2:cd", has_free_lane=False)
    explanation = explain(some_facts(daemons=(with_the_lane, with_the_store)), None)
    assert explanation.excluded_by == ("lane free",)
    assert "of other:2:cd is busy" in explanation.verdict


@pytest.mark.parametrize(("daemons", "noted"), [((), True), ((a_daemon(),), False)])
def test_a_holder_that_gives_no_sign_of_life_is_noted(daemons: tuple[Daemon, ...], *, noted: bool) -> None:
    """With the moment from which the record is anybody's."""
    explanation = explain(some_facts(**HELD, daemons=daemons), None)
    said = [note for note in explanation.notes if "gives no sign of life" in note]
    assert bool(said) is noted
    assert all("in 40 s" in note for note in said)


def test_a_lease_that_ran_out_is_noted() -> None:
    """The record is ready, and whoever held it left no end."""
    lapsed = HELD | {
        "lease_until": NOON - timedelta(seconds=5),
        "wake_at": None,
        "is_due": True,
        "is_not_held": True,
        "ahead": 0,
    }
    explanation = explain(some_facts(**lapsed), None)
    assert explanation.excluded_by == ()
    assert any("ran out 5 s ago" in note for note in explanation.notes)


def an_attempt(**changes: Any) -> Attempt:
    """Return an attempt that has no end."""
    given: dict[str, Any] = {"at": NOON, "by": "host:1:ab", "ended_at": None}
    given |= {"kind": None, "cause": None, "is_running": False}
    return Attempt(**(given | changes))


def test_the_last_failure_is_told_by_its_cause() -> None:
    """The one under way is passed over; one without an end is the death of its process."""
    failed = an_attempt(kind="failed", cause="ValueError: no such thing", ended_at=NOON)
    facts = some_facts(failures=2, attempts=(an_attempt(is_running=True), failed))
    assert "The last failure: ValueError: no such thing." in explain(facts, None).notes
    assert cause_of(an_attempt(is_running=True)) == "under way"
    assert "the process died" in cause_of(an_attempt())
    assert cause_of(an_attempt(kind="timed_out")) == "timed out"
    assert not any("last failure" in note for note in explain(evolve(facts, failures=0), None).notes)


@pytest.mark.parametrize(("limit", "noted"), [(20.0, True), (40.0, False), (None, False)])
def test_time_past_the_limit_is_noted_with_the_claim_under_way(limit: float | None, *, noted: bool) -> None:
    """Ten seconds before this claim and twenty in it."""
    explanation = explain(some_facts(**HELD), limit)
    assert any("stops it as overdue" in note for note in explanation.notes) is noted

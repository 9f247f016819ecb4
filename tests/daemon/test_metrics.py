"""The numbers: a mark for every end, nothing for an empty run, and a line of documentation for each."""

import re
from pathlib import Path

import pytest

from daemon.metrics import Mark, Metrics
from daemon.queue_gauges import exposition_of
from storage.database import CALL_ENDS
from storage.queue_numbers import Heap
from storage.record import Milestone, StopCode

ROOT = Path(__file__).parents[2]


@pytest.fixture
def metrics() -> Metrics:
    """The numbers of a service with one stage."""
    return Metrics(stages=["convert"], lanes=["convert"])


def test_every_series_is_there_from_the_start(metrics: Metrics) -> None:
    """An alarm on a rate needs the zero before the first failure."""
    for mark in Mark:
        assert metrics.value("rubezh_attempts_total", stage="convert", mark=mark) == 0
    for code in StopCode:
        assert metrics.value("rubezh_stops_total", code=code) == 0
    assert metrics.value("rubezh_lane_closed", lane="convert") == 0


@pytest.mark.parametrize("mark", Mark)
def test_an_end_is_counted_with_its_own_mark_alone(metrics: Metrics, mark: Mark) -> None:
    """A give-back is no failure, a deferral no success."""
    metrics.attempt_ended("convert", mark, seconds=2.5)
    counted = {other: metrics.value("rubezh_attempts_total", stage="convert", mark=other) for other in Mark}
    assert counted == {other: float(other is mark) for other in Mark}
    assert metrics.value("rubezh_attempt_seconds_sum", stage="convert") == 2.5


def test_durations_states_and_stops_are_kept(metrics: Metrics) -> None:
    """Each is told by what happened and read by its name."""
    metrics.claimed(0.003)
    metrics.settled(0.004)
    metrics.stopped(StopCode.OVERDUE)
    metrics.slots_busy("convert", 2)
    metrics.lane_closed("convert", closed=True)
    metrics.database_away(away=True)
    assert metrics.value("rubezh_claim_seconds_count") == 1
    assert metrics.value("rubezh_settle_seconds_sum") == 0.004
    assert metrics.value("rubezh_stops_total", code="overdue") == 1
    assert metrics.value("rubezh_slots_busy", lane="convert") == 2
    assert metrics.value("rubezh_lane_closed", lane="convert") == 1
    assert metrics.value("rubezh_database_away") == 1
    metrics.database_away(away=False)
    assert metrics.value("rubezh_database_away") == 0


def test_leases_claims_calls_and_speed_are_kept(metrics: Metrics) -> None:
    """What a claim costs, what is in hand, and how fast audio becomes text."""
    metrics.slots({"convert": 3})
    metrics.claims_held(2)
    metrics.leases_renewed(5, lost=1)
    metrics.database_call("answered", 0.002)
    metrics.recognised("convert", audio_seconds=300.0, seconds=30.0)
    metrics.recognised("convert", audio_seconds=-1.0, seconds=1.0)
    assert metrics.value("rubezh_slots", lane="convert") == 3
    assert metrics.value("rubezh_claims_held") == 2
    assert metrics.value("rubezh_leases_renewed_total") == 5
    assert metrics.value("rubezh_leases_lost_total") == 1
    assert metrics.value("rubezh_recognised_audio_seconds_total", lane="convert") == 300.0
    assert metrics.value("rubezh_recognition_seconds_total", lane="convert") == 31.0
    calls = {end: metrics.value("rubezh_database_calls_total", end=end) for end in CALL_ENDS}
    assert calls == {"answered": 1.0, "refused": 0.0, "away": 0.0}
    assert metrics.value("rubezh_database_call_seconds_count") == 1
    assert metrics.value("rubezh_log_entries_dropped") >= 0


def test_the_queue_is_told_by_milestone_lane_and_state() -> None:
    """Each kind that may be there has a series; the age is the oldest's of all states."""
    heaps = (
        Heap(milestone="created", lane="convert", state="waiting", records=7, oldest_seconds=12.5),
        Heap(milestone="created", lane="convert", state="held", records=1, oldest_seconds=90.0),
    )
    told = exposition_of(heaps, LANES).decode()
    assert 'rubezh_queue_records{lane="convert",milestone="created",state="waiting"} 7.0\n' in told
    assert 'rubezh_queue_records{lane="whisper",milestone="transcribe",state="delayed"} 0.0\n' in told
    assert 'rubezh_milestone_age_seconds{milestone="created"} 90.0\n' in told
    assert 'rubezh_milestone_age_seconds{milestone="converted"} 0.0\n' in told


def test_a_number_that_is_not_kept_is_an_error(metrics: Metrics) -> None:
    """A misspelt name in a check must not look like zero."""
    with pytest.raises(KeyError):
        metrics.value("rubezh_attempt_total", stage="convert", mark="success")


def test_two_services_do_not_count_together(metrics: Metrics) -> None:
    """One process may run several, as tests do."""
    Metrics(stages=["convert"], lanes=["convert"]).attempt_ended("convert", Mark.SUCCESS, 1)
    assert metrics.value("rubezh_attempts_total", stage="convert", mark="success") == 0


def test_prometheus_reads_it(metrics: Metrics) -> None:
    """The exposition is its text format, with a help line for each number."""
    metrics.attempt_ended("convert", Mark.TIMED_OUT, 2)
    text = metrics.exposition().decode()
    assert 'rubezh_attempts_total{mark="timed_out",stage="convert"} 1.0\n' in text
    names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert names == re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE)


LANES = {Milestone.CREATED: "convert", Milestone.CONVERTED: "whisper", Milestone.TRANSCRIBE: "whisper"}


def test_every_number_is_documented_and_no_other(metrics: Metrics) -> None:
    """docs/operators.md names exactly what the service tells."""
    exposition = metrics.exposition() + exposition_of((), LANES)
    told = set(re.findall(r"^# TYPE (\S+)", exposition.decode(), re.MULTILINE))
    documented = set(
        re.findall(r"^\| `(rubezh_[a-z_]+)", (ROOT / "docs/operators.md").read_text("utf-8"), re.MULTILINE)
    )
    assert documented == told

"""The service's own numbers, in the form that Prometheus reads. One `Metrics` for each service, none global.

An empty run counts nothing. What each number means is told in docs/operators.md.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from daemon.journal import entries_dropped
from storage.database import CALL_ENDS
from storage.record import StopCode

_DATABASE_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_ATTEMPT_SECONDS: Final = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

NO_STAGE: Final = "none"  # of a claim that was lost before its record was read

# The moment each series began is of use to nobody here, and doubles their number.
disable_created_metrics()  # type: ignore[no-untyped-call]  # typed everywhere but here


class Mark(StrEnum):
    """How an attempt ended: each end has a mark of its own."""

    SUCCESS = "success"
    DEFERRED = "deferred"
    HOPELESS = "hopeless"
    FAILURE = "failure"
    TIMED_OUT = "timed_out"
    GIVEN_BACK = "given_back"
    LOST = "lost"


class Metrics:
    """What is counted and measured, named by what happened."""

    def __init__(self, stages: Iterable[str], lanes: Iterable[str]) -> None:
        """Begin at zero, with every series there from the start: a number that is missing raises no alarm."""
        self._registry = CollectorRegistry()
        self._attempts = Counter(
            "rubezh_attempts",
            "Attempts by stage and by how they ended",
            ("stage", "mark"),
            registry=self._registry,
        )
        self._attempt_seconds = Histogram(
            "rubezh_attempt_seconds",
            "Seconds from taking a record to settling it",
            ("stage",),
            registry=self._registry,
            buckets=_ATTEMPT_SECONDS,
        )
        self._claim_seconds = Histogram(
            "rubezh_claim_seconds",
            "Seconds that the database took for a claim which took a record",
            registry=self._registry,
            buckets=_DATABASE_SECONDS,
        )
        self._settle_seconds = Histogram(
            "rubezh_settle_seconds",
            "Seconds until a settle was known to be written or refused",
            registry=self._registry,
            buckets=_DATABASE_SECONDS,
        )
        self._stops = Counter(
            "rubezh_stops",
            "Records put out of work, by the code of the reason",
            ("code",),
            registry=self._registry,
        )
        self._slots_busy = Gauge(
            "rubezh_slots_busy", "Slots of a lane that are at work", ("lane",), registry=self._registry
        )
        self._lane_closed = Gauge(
            "rubezh_lane_closed", "1 while what a lane needs is away", ("lane",), registry=self._registry
        )
        self._slots = Gauge(
            "rubezh_slots", "Slots of a lane in this process", ("lane",), registry=self._registry
        )
        self._database_away = Gauge(
            "rubezh_database_away", "1 while PostgreSQL cannot be reached", registry=self._registry
        )
        self._database_calls = Counter(
            "rubezh_database_calls",
            "Calls of the database by how they ended",
            ("end",),
            registry=self._registry,
        )
        self._database_call_seconds = Histogram(
            "rubezh_database_call_seconds",
            "Seconds of a database call, the wait for a connection included",
            registry=self._registry,
            buckets=_DATABASE_SECONDS,
        )
        self._claims_held = Gauge(
            "rubezh_claims_held", "Claims that this process holds", registry=self._registry
        )
        self._leases_renewed = Counter("rubezh_leases_renewed", "Renewals of leases", registry=self._registry)
        self._leases_lost = Counter(
            "rubezh_leases_lost",
            "Claims found lost when their leases were to be renewed",
            registry=self._registry,
        )
        self._recognised_audio = Counter(
            "rubezh_recognised_audio_seconds",
            "Seconds of audio recognised",
            ("lane",),
            registry=self._registry,
        )
        self._recognition = Counter(
            "rubezh_recognition_seconds",
            "Seconds spent on recognising it",
            ("lane",),
            registry=self._registry,
        )
        self._log_dropped = Gauge(
            "rubezh_log_entries_dropped", "Entries that the log lost since the start", registry=self._registry
        )
        self._log_dropped.set_function(entries_dropped)
        for stage in stages:
            self._attempt_seconds.labels(stage)
            for mark in Mark:
                self._attempts.labels(stage, mark)
        self._attempts.labels(NO_STAGE, Mark.LOST)
        for lane in lanes:
            self._slots_busy.labels(lane)
            self._lane_closed.labels(lane)
            self._slots.labels(lane)
            self._recognised_audio.labels(lane)
            self._recognition.labels(lane)
        for end in CALL_ENDS:
            self._database_calls.labels(end)
        for code in StopCode:
            self._stops.labels(code)

    def claimed(self, seconds: float) -> None:
        """A claim took a record; an empty one is never told here."""
        self._claim_seconds.observe(seconds)

    def attempt_ended(self, stage: str, mark: Mark, seconds: float) -> None:
        """An attempt of `stage` ended so, `seconds` after its claim."""
        self._attempts.labels(stage, mark).inc()
        self._attempt_seconds.labels(stage).observe(seconds)

    def settled(self, seconds: float) -> None:
        """A settle was answered."""
        self._settle_seconds.observe(seconds)

    def stopped(self, code: StopCode) -> None:
        """A record got its stop flag."""
        self._stops.labels(code).inc()

    def slots_busy(self, lane: str, number: int) -> None:
        """So many slots of the lane are at work."""
        self._slots_busy.labels(lane).set(number)

    def lane_closed(self, lane: str, *, closed: bool) -> None:
        """The lane was closed, or opened."""
        self._lane_closed.labels(lane).set(closed)

    def database_away(self, *, away: bool) -> None:
        """PostgreSQL went away, or came back."""
        self._database_away.set(away)

    def slots(self, numbers: Mapping[str, int]) -> None:
        """Each lane has so many slots here."""
        for lane, number in numbers.items():
            self._slots.labels(lane).set(number)

    def database_call(self, end: str, seconds: float) -> None:
        """A call of the database ended so, after so long."""
        self._database_calls.labels(end).inc()
        self._database_call_seconds.observe(seconds)

    def claims_held(self, number: int) -> None:
        """So many claims are held here."""
        self._claims_held.set(number)

    def leases_renewed(self, number: int, *, lost: int) -> None:
        """So many leases were pushed, and so many claims were no longer ours."""
        self._leases_renewed.inc(number)
        self._leases_lost.inc(lost)

    def recognised(self, lane: str, *, audio_seconds: float, seconds: float) -> None:
        """So much audio became text in so many seconds of work."""
        self._recognised_audio.labels(lane).inc(max(audio_seconds, 0.0))
        self._recognition.labels(lane).inc(seconds)

    def value(self, name: str, **labels: str) -> float:
        """Return one number by its full name and labels; KeyError for one that is not kept."""
        found = self._registry.get_sample_value(name, labels)
        if found is None:
            raise KeyError(name, labels)
        return found

    def exposition(self) -> bytes:
        """Return everything as Prometheus' text format, UTF-8."""
        return generate_latest(self._registry)

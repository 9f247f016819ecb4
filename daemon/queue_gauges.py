"""The queue's numbers, read from the database when they are asked for; every daemon on it tells the same.

A database that does not answer in time has no numbers: then there are none, rather than old ones.
"""

from collections.abc import Mapping

import structlog
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from storage.database import Database
from storage.errors import DatabaseUnavailable
from storage.queue_numbers import Heap, read_queue
from storage.record import Milestone

log = structlog.get_logger()

STATES = ("waiting", "held", "delayed")


async def queue_exposition(database: Database, lanes: Mapping[Milestone, str]) -> bytes:
    """Return the numbers in Prometheus' text format; nothing when the database is away."""
    try:
        heaps = await read_queue(database)
    except DatabaseUnavailable as error:
        log.debug("queue.uncounted", reason=str(error))
        return b""
    return exposition_of(heaps, lanes)


def exposition_of(heaps: tuple[Heap, ...], lanes: Mapping[Milestone, str]) -> bytes:
    """Return the numbers of these heaps; every milestone in `lanes` is there, also at zero."""
    registry = CollectorRegistry()
    records = Gauge(
        "rubezh_queue_records",
        "Records that are to be worked on, by the milestone they are at",
        ("milestone", "lane", "state"),
        registry=registry,
    )
    age = Gauge(
        "rubezh_milestone_age_seconds",
        "Since when the record is at its milestone that is there for the longest",
        ("milestone",),
        registry=registry,
    )
    for milestone, lane in lanes.items():
        there = [heap.oldest_seconds for heap in heaps if heap.milestone == milestone]
        age.labels(milestone).set(max(there, default=0.0))
        for state in STATES:
            records.labels(milestone, lane, state)
    for heap in heaps:
        records.labels(heap.milestone, heap.lane, heap.state).set(heap.records)
    return generate_latest(registry)

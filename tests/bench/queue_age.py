"""Lets a queue grow older: claims, reads and settles with the protocol's own statements and little else.

`python -m tests.bench.queue_age DSN STORE RECORDS`: as another daemon would, but in a fraction of the time.
"""

import sys
import time
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from storage.floors import BOTTOM, LATE_SECONDS, WAKE_SECONDS
from storage.record import Milestone
from storage.sql import query
from tests.bench.queue import FAILURES_LIMIT, LEASE_SECONDS
from tests.bench.queue_worker import LANE

DETAIL = {"by": "age", "detail": Jsonb({})}
FOUND = {"operation": Jsonb({}), "recognised_seconds": 60.0, "found_language": "en"}
REACHED = {"milestone": Milestone.DONE, "lane": None}


def age(dsn: str, store: UUID, records: int) -> None:
    """Bring so many records to their end."""
    asked: dict[str, Any] = {
        "claimed_by": "age",
        "sign": None,
        "lanes": [LANE],
        "floors": [BOTTOM],
        "stores": [store],
        "failures_limit": FAILURES_LIMIT,
        "milestones": [Milestone.TRANSCRIBE],
        "leases": [LEASE_SECONDS],
    }
    wake_from, woken = BOTTOM, 0.0
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(records):
            if time.monotonic() - woken > WAKE_SECONDS:
                wake_from, woken = _wake(connection, wake_from), time.monotonic()
            token = {"token": uuid4()}
            row = connection.execute(query("claim"), asked | token | {"wake_from": wake_from}).fetchone()
            assert row is not None
            guard = token | {"id": row[0]}
            record = connection.execute(query("read_record"), guard).fetchone()
            assert record is not None
            asked["floors"] = [record[2]]
            with connection.transaction():
                connection.execute(query("write_advance"), guard | FOUND)
                connection.execute(query("write_text"), guard)
                connection.execute(query("end_reached"), guard | DETAIL | REACHED)


def _wake(connection: psycopg.Connection[Any], wake_from: datetime) -> datetime:
    row = connection.execute(query("wake"), {"wake_from": wake_from, "sign": None}).fetchone()
    assert row is not None
    until: datetime = row[0]
    return until - timedelta(seconds=LATE_SECONDS)


if __name__ == "__main__":
    age(sys.argv[1], UUID(sys.argv[2]), int(sys.argv[3]))

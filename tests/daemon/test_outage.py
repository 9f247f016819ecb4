"""An outage of the database is told when it begins and when it ends."""

import trio
from structlog.testing import capture_logs

from daemon.metrics import Metrics
from daemon.outage import Outage
from storage.errors import DatabaseUnavailable


async def test_an_outage_is_two_lines_however_many_calls_it_meets(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One when it begins, one with its length when it ends; the number follows."""
    metrics = Metrics([], [])
    outage = Outage(metrics)
    with capture_logs() as entries:
        outage.over()
        for number in range(1000):
            outage.noticed(DatabaseUnavailable(f"away {number}"), trio.current_time())
            assert metrics.value("rubezh_database_away") == 1
            await trio.sleep(1.5)
        outage.over()
        outage.over()
    assert metrics.value("rubezh_database_away") == 0
    assert entries == [
        {"event": "database.away", "log_level": "error", "reason": "away 0"},
        {"event": "database.returned", "log_level": "info", "away_seconds": 1500.0},
    ]


async def test_the_next_outage_is_told_again() -> None:
    """Each is one of its own."""
    outage = Outage(Metrics([], []))
    with capture_logs() as entries:
        for _ in range(2):
            outage.noticed(DatabaseUnavailable("away"), trio.current_time())
            outage.over()
    assert [entry["event"] for entry in entries] == ["database.away", "database.returned"] * 2


async def test_a_call_that_fails_late_does_not_begin_an_outage_anew(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It was asked before another one was answered, and has run into its own deadline since."""
    outage = Outage(Metrics([], []))
    asked_at = trio.current_time()
    with capture_logs() as entries:
        outage.noticed(DatabaseUnavailable("away"), asked_at)
        await trio.sleep(5)
        outage.over()
        await trio.sleep(5)
        outage.noticed(DatabaseUnavailable("did not answer within 10 s"), asked_at)
        outage.over()
    assert [entry["event"] for entry in entries] == ["database.away", "database.returned"]

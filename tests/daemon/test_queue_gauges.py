"""The queue's numbers come from the database, and are missing rather than old when it is away."""

from daemon.queue_gauges import queue_exposition
from storage.audio import Store
from storage.database import Database, open_database
from storage.record import Milestone
from tests.making import a_record, an_account

LANES = {Milestone.CREATED: "convert"}


async def test_the_numbers_are_the_databases(database: Database, store: Store) -> None:
    """What waits there is told, whoever asks."""
    account, _ = await an_account(database)
    await a_record(database, store, account)
    told = (await queue_exposition(database, LANES)).decode()
    assert 'rubezh_queue_records{lane="convert",milestone="created",state="waiting"} 1.0\n' in told


async def test_a_database_that_is_away_has_no_numbers(database: Database) -> None:
    """A scrape is answered all the same."""
    ended: list[tuple[str, float]] = []
    async with open_database(
        database.dsn,
        pool_size=2,
        call_seconds=5,
        statement_seconds=2,
        listen=True,
        call_ended=lambda end, seconds: ended.append((end, seconds)),
    ) as other:
        await queue_exposition(other, LANES)
        assert [end for end, _ in ended] == ["answered", "answered"], "the check of the server, and ours"
    assert await queue_exposition(other, LANES) == b""
    assert ended[-1][0] == "away"

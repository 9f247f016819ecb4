"""The history kept with each record."""

from storage.audio import Store
from storage.claim import NotFound
from storage.database import Database
from storage.events import read_events
from storage.ids import new_id
from storage.owner import lift, stop
from tests.making import a_record, an_account, put


async def test_the_history_is_read_in_its_order(database: Database, store: Store) -> None:
    """The oldest event first, each with who did it and at which milestone."""
    account, _ = await an_account(database)
    record_id = await a_record(database, store, account)
    await stop(database, record_id, account.id, "anna")
    await lift(database, record_id, account.id, "anna")
    events = await read_events(database, record_id, account.id)
    assert not isinstance(events, NotFound)
    assert [(event.kind, event.milestone, event.by) for event in events] == [
        ("accepted", "created", "anna"),
        ("stopped", "created", "anna"),
        ("lifted", "created", "anna"),
    ]
    assert events[1].detail["code"] == "stopped_by_owner"
    assert [event.id for event in events] == sorted(event.id for event in events)
    assert await read_events(database, record_id, None) == events


async def test_a_history_one_may_not_see_is_not_found(database: Database, store: Store) -> None:
    """Unknown, somebody else's and deleted are the same."""
    account, _ = await an_account(database)
    another, _ = await an_account(database, "boris")
    record_id, unknown = await a_record(database, store, account), new_id()
    assert await read_events(database, record_id, another.id) == NotFound(record_id)
    assert await read_events(database, unknown, account.id) == NotFound(unknown)
    await put(database, "UPDATE records SET deleted_at = now()")
    assert await read_events(database, record_id, account.id) == NotFound(record_id)


async def test_a_record_without_events_is_there(database: Database, store: Store) -> None:
    """An empty history is not an unknown record."""
    account, _ = await an_account(database)
    record_id = await a_record(database, store, account)
    await put(database, "DELETE FROM events")
    assert await read_events(database, record_id, account.id) == ()

"""What a record is at."""

from typing import Any
from uuid import UUID

import pytest

from storage import readiness as module
from storage.account import Account
from storage.audio import Store
from storage.claim import NotFound
from storage.corrections import read_segments
from storage.database import Database
from storage.ids import new_id
from storage.readiness import Readiness, Wanted, list_records, read_readiness
from storage.record import Milestone, Segment, StopCode, Word
from tests.making import a_record, an_account, change, put

DONE = "milestone = 'done', lane = NULL, recognised_text = 'All of it.'"
STOPPED = "stop_code = 'silent', stop_reason = 'rms 0.0001', stopped_at = now(), stopped_by = 'host:1'"
HELD = (
    "claim_token = gen_random_uuid(), claimed_by = 'w', claimed_at = now(), lease_seconds = 60, "
    "lease_until = now() + interval '60 s', wake_at = now() + interval '60 s', failures = 1"
)


async def polled(database: Database, record_id: UUID, owner: Account, changes: str = "") -> Readiness:
    """Return what the poll shows, after a change of the row."""
    if changes:
        await change(database, record_id, changes)
    readiness = await read_readiness(database, record_id, owner.id)
    assert isinstance(readiness, Readiness)
    return readiness


async def test_a_new_record_waits_in_the_queue(database: Database, store: Store) -> None:
    """At `created`, with a place, and with nothing known of its length yet."""
    account, _ = await an_account(database)
    readiness = await polled(database, await a_record(database, store, account), account)
    assert readiness.milestone is Milestone.CREATED
    assert (readiness.queue_position, readiness.failures, readiness.stop) == (1, 0, None)
    assert (readiness.audio_seconds, readiness.fraction, readiness.text) == (None, None, None)
    assert readiness.topics == ("one", "two")


async def test_the_place_counts_only_who_really_stands_before(database: Database, store: Store) -> None:
    """Held, stopped, deleted, done, younger ones and those of other lanes are not waited for."""
    account, _ = await an_account(database)
    older = [await a_record(database, store, account) for _ in range(7)]
    record_id = await a_record(database, store, account)
    await a_record(database, store, account)
    assert (await polled(database, record_id, account)).queue_position == 8
    changes = (HELD, STOPPED, "deleted_at = now()", DONE, "lane = 'whisper'")
    for other, changed in zip(older, changes, strict=False):
        await change(database, other, changed)
    assert (await polled(database, record_id, account)).queue_position == 3


async def test_the_place_is_counted_to_a_bound(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long queue is not counted to its end at every poll."""
    monkeypatch.setattr(module, "MOST_AHEAD", 3)
    account, _ = await an_account(database)
    ids = [await a_record(database, store, account) for _ in range(6)]
    places = [(await polled(database, record_id, account)).queue_position for record_id in ids]
    assert places == [1, 2, 3, 4, 4, 4]


@pytest.mark.parametrize(
    ("changes", "position"),
    [
        ("failures = 0", 1),
        (HELD, None),
        (STOPPED, None),
        (DONE, None),
        ("wake_at = now() + interval '1 hour'", None),
        ("wake_at = now() - interval '1 hour'", 1),
    ],
)
async def test_only_a_record_that_waits_its_turn_has_a_place(
    database: Database, store: Store, changes: str, position: int | None
) -> None:
    """One that is worked on, delayed, stopped or done waits for no claimer."""
    account, _ = await an_account(database)
    record_id = await a_record(database, store, account)
    assert (await polled(database, record_id, account, changes)).queue_position == position


@pytest.mark.parametrize(
    ("changes", "fraction"),
    [
        ("decoded_seconds = NULL, declared_seconds = NULL", None),
        ("decoded_seconds = 0", None),
        ("declared_seconds = -1", None),
        ("declared_seconds = 100, recognised_seconds = 25", 0.25),
        ("declared_seconds = 100, decoded_seconds = 50, recognised_seconds = 25", 0.5),
        ("decoded_seconds = 50, recognised_seconds = 51", 1.0),
        ("decoded_seconds = 14400, recognised_seconds = 2535", 0.176),
        (DONE, 1.0),
        (f"{DONE}, decoded_seconds = 0", 1.0),
    ],
)
async def test_progress_never_divides_by_an_unknown_length(
    database: Database, store: Store, changes: str, fraction: float | None
) -> None:
    """No length, no fraction; with one it goes from 0 to 1."""
    account, _ = await an_account(database)
    record_id = await a_record(database, store, account)
    assert (await polled(database, record_id, account, changes)).fraction == fraction


async def test_a_stopped_record_keeps_its_milestone(database: Database, store: Store) -> None:
    """The poll shows where it stood, the flag and its code; the full reason is for the service owner."""
    account, _ = await an_account(database)
    record_id = await a_record(database, store, account)
    readiness = await polled(database, record_id, account, f"milestone = 'converted', {STOPPED}")
    assert readiness.milestone is Milestone.CONVERTED
    assert readiness.stop is not None
    assert (readiness.stop.code, readiness.stop.reason) == (StopCode.SILENT, "rms 0.0001")


async def test_silence_is_warned_of_once_it_was_heard_to_its_end(database: Database, store: Store) -> None:
    """A done record without a word says `silent`, after what was wrong with its audio."""
    account, _ = await an_account(database)
    record_id = await a_record(database, store, account)
    cut = "audio_warnings = '{cut_short}'"
    assert (await polled(database, record_id, account, cut)).warnings == ("cut_short",)
    heard = await polled(database, record_id, account, DONE.replace("'All of it.'", "''"))
    assert heard.warnings == ("cut_short", "silent")
    assert (await polled(database, record_id, account, DONE)).warnings == ("cut_short",)


async def test_text_is_shown_when_it_is_done(database: Database, store: Store) -> None:
    """Not a word before."""
    account, _ = await an_account(database)
    record_id = await a_record(database, store, account)
    early = "milestone = 'transcribe', recognised_text = 'All of'"
    assert (await polled(database, record_id, account, early)).text is None
    assert (await polled(database, record_id, account, DONE)).text == "All of it."


async def test_what_one_may_not_see_is_not_found(database: Database, store: Store) -> None:
    """Unknown, somebody else's and deleted are the same; the service owner sees all that is not deleted."""
    account, _ = await an_account(database)
    another, _ = await an_account(database, "boris")
    record_id, unknown = await a_record(database, store, account), new_id()
    assert await read_readiness(database, record_id, another.id) == NotFound(record_id)
    assert await read_readiness(database, unknown, account.id) == NotFound(unknown)
    assert isinstance(await read_readiness(database, record_id, None), Readiness)
    await put(database, "UPDATE records SET deleted_at = now()")
    for owner_id in (account.id, None):
        assert await read_readiness(database, record_id, owner_id) == NotFound(record_id)


async def test_segments_come_in_the_order_of_the_audio(database: Database, store: Store) -> None:
    """By slice, then by number, with their words; to the owner only."""
    account, _ = await an_account(database)
    another, _ = await an_account(database, "boris")
    record_id = await a_record(database, store, account)
    word = '[{"start": 0.5, "end": 1, "text": "so", "probability": 0.9}]'
    statement = "INSERT INTO segments VALUES (%s, %s, %s, %s, %s, %s, %s)"
    rows: tuple[tuple[Any, ...], ...] = (
        (1, 0, 9, 10, "end", "[]"),
        (0, 1, 2, 3, "then", "[]"),
        (0, 0, 0.5, 1, "so", word),
    )
    for row in rows:
        await put(database, statement, record_id, *row)
    segments = await read_segments(database, record_id, account.id)
    assert [segment.text for segment in segments] == ["so", "then", "end"]
    assert segments[0] == Segment(
        slice=0,
        number=0,
        start=0.5,
        end=1.0,
        text="so",
        words=(Word(start=0.5, end=1.0, text="so", probability=0.9),),
    )
    assert await read_segments(database, record_id, another.id) == ()


async def test_records_are_listed_newest_first_page_by_page(database: Database, store: Store) -> None:
    """Each page goes on where the one before ended, also among records of one moment."""
    account, _ = await an_account(database)
    another, _ = await an_account(database, "boris")
    ids = [await a_record(database, store, account) for _ in range(5)]
    foreign = await a_record(database, store, another)
    await put(database, "UPDATE records SET created_at = now()")
    await put(database, "UPDATE records SET deleted_at = now() WHERE id = %s", ids.pop(0))
    seen: list[UUID] = []
    page = await list_records(database, account.id, Wanted(limit=3))
    while page:
        seen += [line.id for line in page]
        page = await list_records(database, account.id, Wanted(limit=3, before=page[-1]))
    assert seen == sorted(ids, reverse=True)
    everybody = await list_records(database, None)
    assert {line.id for line in everybody} == {*ids, foreign}
    assert {line.owner for line in everybody} == {"anna", "boris"}


async def test_lists_can_be_narrowed(database: Database, store: Store) -> None:
    """By milestone, by the stop flag, by both."""
    account, _ = await an_account(database)
    new, stopped, done = [await a_record(database, store, account) for _ in range(3)]
    await change(database, stopped, STOPPED)
    await change(database, done, DONE)

    async def listed(**wanted: Any) -> set[UUID]:
        return {line.id for line in await list_records(database, account.id, Wanted(**wanted))}

    assert await listed(stopped=True) == {stopped}
    assert await listed(stopped=False) == {new, done}
    assert await listed(milestone=Milestone.DONE) == {done}
    assert await listed(milestone=Milestone.DONE, stopped=True) == set()

"""How a record comes into being."""

import time

import pytest
import trio
from attrs import evolve

from storage.audio import Store
from storage.database import Database, open_database
from storage.errors import DatabaseUnavailable, DataRefused
from storage.ids import new_id
from storage.submissions import accept, accept_or_find, find_same, was_accepted
from tests.making import LANE, a_record, a_submission, an_account, put
from tests.wire import WordCut, open_wire

BEFORE = WordCut(b"INSERT INTO records", carried_out=False)
AFTER = WordCut(b"INSERT INTO records", carried_out=True)


def test_ids_are_made_in_order() -> None:
    """Ids are UUIDv7: their first bits are the time, so later ones are greater from one millisecond on."""
    ids = [new_id() for _ in range(1000)]
    assert {(each.version, each.variant) for each in ids} == {(7, "specified in RFC 4122")}
    assert len(set(ids)) == 1000
    moments = [each.int >> 80 for each in ids]
    assert moments == sorted(moments)


async def test_an_accepted_record_waits_for_its_first_stage(database: Database, store: Store) -> None:
    """The row holds what was submitted, at `created`, and its first event says who brought it."""
    account, _ = await an_account(database)
    submission = await a_submission(store, account, title="Ünïcode \N{SNOWMAN}", track=2, hotwords="Rubezh")
    assert await accept(database, submission, lane=LANE) == submission.id
    statement = """
        SELECT title, topics, track, hotwords, source_path, source_bytes, source_sha256, fingerprint, lane,
            milestone, failures, edition
        FROM records
    """
    assert await put(database, statement) == [
        (
            "Ünïcode \N{SNOWMAN}",
            ["one", "two"],
            2,
            "Rubezh",
            submission.source_path,
            submission.source_bytes,
            submission.source_sha256,
            submission.fingerprint,
            LANE,
            "created",
            0,
            1,
        )
    ]
    events = await put(database, "SELECT record_id, kind, milestone, by, settles FROM events")
    assert events == [(submission.id, "accepted", "created", "anna", False)]


async def test_accepting_twice_is_accepting_once(database: Database, store: Store) -> None:
    """The same submission said again changes nothing, not even the history."""
    account, _ = await an_account(database)
    submission = await a_submission(store, account)
    for title in ("A talk", "Another"):
        assert await accept(database, evolve(submission, title=title), lane=LANE) == submission.id
    assert await put(database, "SELECT title FROM records") == [("A talk",)]
    assert await put(database, "SELECT count(*) FROM events") == [(1,)]


async def test_accepting_rings_the_bell_with_the_lane(database: Database, store: Store) -> None:
    """Whoever listens hears the lane, once the row can be seen."""
    account, _ = await an_account(database)
    submission = await a_submission(store, account)
    heard, send = trio.Event(), []

    def take(payload: str) -> None:
        send.append(payload)
        heard.set()

    async with trio.open_nursery() as nursery:
        started = trio.Event()
        nursery.start_soon(database.hear, "rubezh_ready", take, started.set)
        with trio.fail_after(10):
            await started.wait()
            await accept(database, submission, lane=LANE)
            await heard.wait()
        nursery.cancel_scope.cancel()
    [told] = send
    lane, seconds = told.split()
    assert lane == LANE
    assert abs(float(seconds) - time.time()) < 60


async def test_a_record_of_nobody_is_refused(database: Database, store: Store) -> None:
    """An account that is gone cannot get a record, and the refusal is certain."""
    account, _ = await an_account(database)
    submission = await a_submission(store, account)
    with pytest.raises(DataRefused):
        await accept(database, evolve(submission, owner_id=new_id()), lane=LANE)
    assert not await was_accepted(database, submission.id)


@pytest.mark.parametrize("cuts", [[AFTER], [BEFORE], [AFTER, AFTER]])
async def test_s_i5_an_unknown_commit_is_looked_up(
    database: Database, store: Store, dsn: str, cuts: list[WordCut]
) -> None:
    """Whether the commit was carried out or not when its answer was lost: in the end there is one record."""
    account, _ = await an_account(database)
    submission = await a_submission(store, account)
    async with (
        open_wire(dsn) as wire,
        open_database(wire.dsn, pool_size=2, call_seconds=5, statement_seconds=5, listen=True) as shaky,
    ):
        wire.cuts += cuts
        assert await accept(shaky, submission, lane=LANE) == submission.id
        assert wire.cuts == []
    assert await put(database, "SELECT id FROM records") == [(submission.id,)]
    assert await put(database, "SELECT count(*) FROM events") == [(1,)]
    assert store.path(submission.source_path).exists()


async def test_a_database_that_stays_away_is_told_within_a_bound(
    database: Database, store: Store, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An accept gives up after its seconds, and leaves the bytes: the outcome is not known."""
    monkeypatch.setattr("storage.submissions.ACCEPT_SECONDS", 2.0)
    account, _ = await an_account(database)
    submission = await a_submission(store, account)
    async with (
        open_wire(dsn) as wire,
        open_database(wire.dsn, pool_size=2, call_seconds=1, statement_seconds=1, listen=True) as shaky,
    ):
        wire.away = True
        wire.cuts += [BEFORE] * 100
        with trio.fail_after(8), pytest.raises(DatabaseUnavailable):
            await accept(shaky, submission, lane=LANE)
    assert store.path(submission.source_path).exists()


async def test_the_same_work_is_found_and_not_made_again(database: Database, store: Store) -> None:
    """Same account, bytes and deciding options: the same record, whatever the file is called."""
    account, _ = await an_account(database)
    another, _ = await an_account(database, "boris")
    first = await a_submission(store, account)
    assert await find_same(database, account.id, first.fingerprint) is None
    assert await accept_or_find(database, first, lane=LANE) == first.id
    renamed = await a_submission(store, account, filename="copy.wav", title="Else")
    assert await accept_or_find(database, renamed, lane=LANE) == first.id
    assert await find_same(database, account.id, renamed.fingerprint) == first.id
    for different in (
        await a_submission(store, account, b"other bytes"),
        await a_submission(store, account, asked_language="ru"),
        await a_submission(store, account, channels="split"),
        await a_submission(store, account, track=0),
        await a_submission(store, account, hotwords="Rubezh"),
        await a_submission(store, another),
    ):
        assert await accept_or_find(database, different, lane=LANE) == different.id


async def test_of_many_same_submissions_at_once_one_becomes_a_record(
    database: Database, store: Store
) -> None:
    """Ten that arrive together get one id."""
    account, _ = await an_account(database)
    submissions = [await a_submission(store, account) for _ in range(10)]
    ids = []

    async def hand_in(number: int) -> None:
        ids.append(await accept_or_find(database, submissions[number], lane=LANE))

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(hand_in, number)
    assert len(ids) == 10
    assert await put(database, "SELECT id FROM records") == [(ids[0],)]
    assert set(ids) == {ids[0]}


async def test_a_deleted_record_is_not_found_again(database: Database, store: Store) -> None:
    """Who deletes a record and hands the file in again wants it done again."""
    account, _ = await an_account(database)
    first = await a_record(database, store, account)
    await put(database, "UPDATE records SET deleted_at = now()")
    again = await a_submission(store, account)
    assert await accept_or_find(database, again, lane=LANE) == again.id != first

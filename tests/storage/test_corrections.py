"""Corrections are the owner's: kept by edition, beside what was recognised, whatever the pipeline writes."""

from uuid import UUID

import trio

from storage.account import Account
from storage.audio import Store
from storage.corrections import (
    Place,
    correct,
    count_segments,
    read_corrections,
    read_own_segment,
    read_own_segments,
    read_segments,
    read_unplaced,
)
from storage.database import Database
from storage.ending import Deferred, Reached
from storage.owner import Edit, delete, edit
from storage.readiness import PageWanted, Readiness, read_page, read_readiness
from storage.record import Milestone, Segment, Word
from storage.searching import read_hits
from tests.builders import Queue, advance
from tests.making import a_record, an_account, change, put

FIRST = Place(slice=0, number=0)


async def a_text(database: Database, store: Store, owner: Account, *texts: str) -> UUID:
    """Return a record that is done, with a segment a second."""
    record_id = await a_record(database, store, owner)
    for second, text in enumerate(texts):
        await put(
            database,
            "INSERT INTO segments (record_id, slice, number, start_seconds, end_seconds, text)"
            " VALUES (%s, %s, 0, %s, %s, %s)",
            record_id,
            second,
            float(second),
            second + 0.9,
            text,
        )
    whole = " ".join(texts)
    await change(database, record_id, f"milestone = 'done', lane = NULL, recognised_text = '{whole}'")
    return record_id


async def texts_of(database: Database, record_id: UUID, *, recognised: bool = False) -> list[str]:
    """Return what each segment says."""
    return [each.text for each in await read_segments(database, record_id, None, recognised=recognised)]


async def test_a_correction_is_what_is_read_and_the_recognised_text_stays(
    database: Database, store: Store
) -> None:
    """Segments, the whole text and the search have the correction; what was recognised is there too."""
    anna, _ = await an_account(database)
    record_id = await a_text(database, store, anna, "a mile stone", "is reached")
    assert await correct(database, record_id, anna.id, "anna", FIRST, 0, "a milestone") == 1
    assert await texts_of(database, record_id) == ["a milestone", "is reached"]
    assert await texts_of(database, record_id, recognised=True) == ["a mile stone", "is reached"]
    readiness = await read_readiness(database, record_id, anna.id)
    assert isinstance(readiness, Readiness)
    assert (readiness.text, readiness.corrections) == ("a milestone is reached", 1)
    (found,) = await read_page(database, anna.id, PageWanted(search="milestone reached"))
    assert found.id == record_id
    hits = await read_hits(database, [record_id], "milestone")
    assert ["".join(piece.text for piece in hit.pieces) for hit in hits[record_id]] == ["a milestone"]


async def test_corrected_words_are_found_also_after_the_title_was_edited(
    database: Database, store: Store
) -> None:
    """The words are gathered anew then, corrections among them."""
    anna, _ = await an_account(database)
    record_id = await a_text(database, store, anna, "a mile stone")
    await correct(database, record_id, anna.id, "anna", FIRST, 0, "a lighthouse")
    await edit(database, record_id, anna.id, "anna", Edit(title="Anew"))
    assert len(await read_page(database, anna.id, PageWanted(search="lighthouse anew"))) == 1


async def test_every_edition_is_kept_and_the_way_back_is_one_more(database: Database, store: Store) -> None:
    """The history has who and what, the last first; the way back says what was recognised again."""
    anna, _ = await an_account(database)
    record_id = await a_text(database, store, anna, "one")
    for edition, text in enumerate(("two", "three", None)):
        assert await correct(database, record_id, anna.id, "anna", FIRST, edition, text) == edition + 1
    history = await read_corrections(database, record_id, FIRST)
    assert [(each.edition, each.text, each.by) for each in history] == [
        (3, None, "anna"),
        (2, "three", "anna"),
        (1, "two", "anna"),
    ]
    assert await texts_of(database, record_id) == ["one"]
    own = await read_own_segment(database, record_id, anna.id, FIRST)
    assert own is not None
    assert (own.edition, own.corrected, own.key) == (3, None, "0.0")


async def test_of_two_who_saw_the_same_only_one_corrects(database: Database, store: Store) -> None:
    """Also when both do so at once."""
    anna, _ = await an_account(database)
    record_id = await a_text(database, store, anna, "one")
    editions: list[int | None] = []

    async def one(text: str) -> None:
        editions.append(await correct(database, record_id, anna.id, "anna", FIRST, 0, text))

    async with trio.open_nursery() as nursery:
        for number in range(4):
            nursery.start_soon(one, f"text {number}")
    assert sorted(editions, key=str) == [1, None, None, None]
    assert await correct(database, record_id, anna.id, "anna", FIRST, 0, "late") is None
    assert await correct(database, record_id, anna.id, "anna", FIRST, 7, "early") is None


async def test_nobody_else_corrects_and_nothing_that_is_not_there(database: Database, store: Store) -> None:
    """Another's record, a segment that there is not, a deleted record."""
    anna, _ = await an_account(database)
    boris, _ = await an_account(database, "boris")
    record_id = await a_text(database, store, anna, "one")
    assert await correct(database, record_id, boris.id, "boris", FIRST, 0, "mine") is None
    assert await read_own_segment(database, record_id, boris.id, FIRST) is None
    assert await correct(database, record_id, anna.id, "anna", Place(slice=9, number=0), 0, "x") is None
    await delete(database, record_id, anna.id, "anna")
    assert await correct(database, record_id, anna.id, "anna", FIRST, 0, "x") is None
    assert await read_own_segments(database, record_id, anna.id) == ()


async def test_a_part_of_the_segments_is_read(database: Database, store: Store) -> None:
    """From one on, so many, in the order of the audio; and how many begin by a second."""
    anna, _ = await an_account(database)
    record_id = await a_text(database, store, anna, *"abcdef")
    part = await read_own_segments(database, record_id, anna.id, first=2, limit=3)
    assert [each.text for each in part] == ["c", "d", "e"]
    assert await count_segments(database, record_id, 3.5) == (6, 4)


async def test_a_gap_that_its_owner_fills_says_something(database: Database, store: Store) -> None:
    """The mark of missing speech gives way to what was said there, words with times."""
    anna, _ = await an_account(database)
    record_id = await a_text(database, store, anna, "")
    await put(database, "UPDATE segments SET gap = 'no_text' WHERE record_id = %s", record_id)
    await correct(database, record_id, anna.id, "anna", FIRST, 0, "I know this")
    (segment,) = await read_segments(database, record_id, None)
    assert (segment.text, segment.gap, len(segment.words)) == ("I know this", None, 3)


async def test_s_p15_a_correction_outlives_the_pipelines_own_writes(queue: Queue) -> None:
    """A segment is recognised anew under a claim while its owner corrects it: the correction stands."""
    record_id = await queue.record(Milestone.TRANSCRIBE)
    owner_id = (await queue.row(record_id))["owner_id"]
    claim = await queue.claim()
    word = Word(start=0.0, end=0.5, text=" one", probability=0.9)
    said = Segment(slice=0, number=0, start=0.0, end=1.0, text="one", words=(word,))
    await queue.settle(claim, Deferred(0.0, advance(said)))
    claim = await queue.claim()
    assert await correct(queue.database, record_id, owner_id, "anna", FIRST, 0, "uno") == 1
    await queue.settle(claim, Reached(advance(said)))
    assert (await queue.row(record_id))["milestone"] == "done"
    assert await texts_of(queue.database, record_id) == ["uno"]
    (segment,) = await read_segments(queue.database, record_id, None)
    assert (segment.words[0].start, segment.words[0].end) == (0.0, 0.5)


async def test_s_p15_a_correction_is_never_put_into_another_piece_of_speech(
    database: Database, store: Store
) -> None:
    """Recognised anew and cut otherwise: where the seconds are others it does not count, and is told."""
    anna, _ = await an_account(database)
    record_id = await a_text(database, store, anna, "one", "two")
    await correct(database, record_id, anna.id, "anna", FIRST, 0, "uno")
    await correct(database, record_id, anna.id, "anna", Place(slice=1, number=0), 0, "due")
    await put(database, "DELETE FROM segments WHERE record_id = %s", record_id)
    assert [each.text for each in await read_unplaced(database, record_id)] == ["uno", "due"]
    again = (
        "INSERT INTO segments (record_id, slice, number, start_seconds, end_seconds, text)"
        " VALUES (%s, %s, 0, %s, %s, %s)"
    )
    await put(database, again, record_id, 0, 0.1, 1.0, "won")
    await put(database, again, record_id, 1, 30.0, 31.0, "thirty")
    assert await texts_of(database, record_id) == ["uno", "thirty"]
    (unplaced,) = await read_unplaced(database, record_id)
    assert (unplaced.start, unplaced.text, unplaced.by) == (1.0, "due", "anna")
    own = await read_own_segment(database, record_id, anna.id, Place(slice=1, number=0))
    assert own is not None
    assert (own.edition, own.corrected) == (1, None)
    assert await correct(database, record_id, anna.id, "anna", Place(slice=1, number=0), 1, "trenta") == 2
    assert await texts_of(database, record_id) == ["uno", "trenta"]
    assert await read_unplaced(database, record_id) == ()

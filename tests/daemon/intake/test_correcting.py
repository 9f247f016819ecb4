"""The text is corrected by its owner, on the edition that was seen; what was recognised is never lost."""

from collections.abc import Callable
from uuid import UUID, uuid4

import httpx
import pytest

from storage.accounts import issue_token
from tests.daemon.intake.conftest import Doors
from tests.making import a_record, an_account, change, put

Problem = Callable[[httpx.Response, int, str], str]
WORDS = (
    '[{"start": 0, "end": 1, "text": " a", "probability": 0.5},'
    ' {"start": 1, "end": 2, "text": " mile", "probability": 0.5}]'
)


async def a_text(doors: Doors) -> UUID:
    """Return a record that is done, of two segments."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    for number, text in enumerate(("a mile", "is reached")):
        await put(
            doors.database,
            "INSERT INTO segments (record_id, slice, number, start_seconds, end_seconds, text, words)"
            " VALUES (%s, 0, %s, %s, %s, %s, %s::jsonb)",
            record_id,
            number,
            number * 2.0,
            number * 2.0 + 2,
            text,
            "[]" if number else WORDS,
        )
    await change(
        doors.database, record_id, "milestone = 'done', lane = NULL, recognised_text = 'a mile is reached'"
    )
    return record_id


async def test_s_p15_a_correction_is_in_every_answer_and_the_recognised_text_on_request(doors: Doors) -> None:
    """The poll, the segments with their words, the files; each of them under a new tag."""
    record_id = await a_text(doors)
    path = f"/v1/records/{record_id}"
    async with doors.client() as client:
        before = await client.get(path)
        known = (await client.get(f"{path}/transcript")).json()["segments"][0]["id"]
        answer = await client.put(f"{path}/segments/{known}", json={"text": "a milestone", "edition": 0})
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        assert (shown["text"], shown["recognised"], shown["edition"]) == ("a milestone", "a mile", 1)
        assert [(each["text"], each["by"]) for each in shown["corrections"]] == [("a milestone", "anna")]

        after = await client.get(path, headers={"If-None-Match": before.headers["etag"]})
        assert (after.status_code, after.json()["text"]) == (200, "a milestone is reached")
        assert (after.json()["corrections"], after.json()["edition"]) == (1, before.json()["edition"])
        segment = (await client.get(f"{path}/transcript")).json()["segments"][0]
        assert [(word["text"], word["start"], word["end"]) for word in segment["words"]] == [
            ("a", 0, 1),
            (" milestone", 1, 2),
        ]
        assert (await client.get(f"{path}/transcript.txt")).text == "a milestone is reached\n"
        raw = await client.get(f"{path}/transcript.txt?text=recognised")
        assert raw.text == "a mile is reached\n"
        assert raw.headers["etag"] != (await client.get(f"{path}/transcript.txt")).headers["etag"]
        assert len((await client.get("/v1/records?q=milestone")).json()["records"]) == 1


async def test_the_way_back_is_one_more_edition(doors: Doors) -> None:
    """Null says what was recognised again, and the history has it all."""
    record_id = await a_text(doors)
    path = f"/v1/records/{record_id}/segments/0.0"
    async with doors.client() as client:
        await client.put(path, json={"text": "x", "edition": 0})
        back = (await client.put(path, json={"text": None, "edition": 1})).json()
        assert (back["text"], back["edition"]) == ("a mile", 2)
        assert [each["text"] for each in (await client.get(path)).json()["corrections"]] == [None, "x"]
        kinds = [
            each["kind"] for each in (await client.get(f"/v1/records/{record_id}/events")).json()["events"]
        ]
        assert kinds[-2:] == ["edited", "edited"]


async def test_of_two_editors_the_second_is_shown_what_is_there(doors: Doors) -> None:
    """And who lost the answer to a correction says it again without harm."""
    record_id = await a_text(doors)
    path = f"/v1/records/{record_id}/segments/0.0"
    async with doors.client() as client:
        for _ in range(2):
            answer = await client.put(path, json={"text": "first", "edition": 0})
            assert answer.json()["edition"] == 1
        late = await client.put(path, json={"text": "second", "edition": 0})
        assert (late.status_code, late.json()["code"]) == (409, "edition_conflict")
        assert late.json()["current"] == {"text": "first", "recognised": "a mile", "edition": 1}
        assert (await client.put(path, json={"text": "second", "edition": 1})).json()["text"] == "second"


@pytest.mark.parametrize(
    "given",
    [
        {"text": "x"},
        {"edition": 0},
        {"text": 5, "edition": 0},
        {"text": "x", "edition": True},
        {"text": "x", "edition": -1},
        {"text": "x", "edition": 0, "by": "me"},
        {"text": "x\0", "edition": 0},
        {"text": "x" * 20_001, "edition": 0},
    ],
)
async def test_what_is_no_correction_is_told_in_a_sentence(
    doors: Doors, problem: Problem, given: dict[str, object]
) -> None:
    """Nothing is written."""
    record_id = await a_text(doors)
    async with doors.client() as client:
        assert problem(
            await client.put(f"/v1/records/{record_id}/segments/0.0", json=given), 422, "invalid_edit"
        )
        assert (await client.get(f"/v1/records/{record_id}/segments/0.0")).json()["edition"] == 0


async def test_nobody_else_and_nothing_else_is_corrected(doors: Doors, problem: Problem) -> None:
    """Another's record, a segment or a record that there is not: all look alike."""
    record_id = await a_text(doors)
    boris, _ = await an_account(doors.database, "boris")
    _, secret = await issue_token(doors.database, boris.id, "test", None)
    given = {"text": "x", "edition": 0}
    async with doors.client(secret) as client:
        assert problem(
            await client.put(f"/v1/records/{record_id}/segments/0.0", json=given), 404, "not_found"
        )
        assert problem(await client.get(f"/v1/records/{record_id}/segments/0.0"), 404, "not_found")
    async with doors.client() as client:
        for path in (f"{record_id}/segments/7.0", f"{record_id}/segments/x", f"{uuid4()}/segments/0.0"):
            assert problem(await client.put(f"/v1/records/{path}", json=given), 404, "not_found")


async def test_the_sides_have_the_names_that_their_owner_gives(doors: Doors, problem: Problem) -> None:
    """By edition, like the title; the empty name takes one away."""
    record_id = await a_text(doors)
    async with doors.client() as client:
        answer = await client.patch(
            f"/v1/records/{record_id}", json={"left_name": " Анна ", "right_name": "Boris", "edition": 1}
        )
        assert (answer.json()["left_name"], answer.json()["right_name"]) == ("Анна", "Boris")
        answer = await client.patch(f"/v1/records/{record_id}", json={"left_name": "", "edition": 2})
        assert (answer.json()["left_name"], answer.json()["edition"]) == ("", 3)
        bad = await client.patch(f"/v1/records/{record_id}", json={"left_name": "a\nb", "edition": 3})
        assert problem(bad, 422, "invalid_edit")

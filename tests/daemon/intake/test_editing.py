"""What owners do to their records."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
import trio

from daemon.intake import json_body
from storage.readiness import read_readiness
from tests.daemon.intake.conftest import Doors
from tests.making import a_record, change, put

Problem = Callable[[httpx.Response, int, str], str]
HEADERS = {"Content-Type": "application/json"}


async def test_s_i26_of_two_edits_of_one_edition_one_is_made(doors: Doors) -> None:
    """The other learns what is there; the first one, sent again as its answer was lost, is no conflict."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    path, answers = f"/v1/records/{record_id}", dict[str, httpx.Response]()

    async def edit(title: str) -> None:
        async with doors.client() as client:
            answers[title] = await client.patch(path, json={"title": title, "edition": 1})

    async with trio.open_nursery() as nursery:
        for title in ("One", "Two"):
            nursery.start_soon(edit, title)
    won, lost = sorted(answers, key=lambda title: answers[title].status_code)
    assert (answers[won].status_code, answers[won].json()["title"]) == (200, won)
    told = answers[lost].json()
    assert (answers[lost].status_code, told["code"]) == (409, "edition_conflict")
    assert told["current"] == {
        "title": won,
        "description": "",
        "topics": ["one", "two"],
        "left_name": "",
        "right_name": "",
        "edition": 2,
    }
    await edit(won)
    assert (answers[won].status_code, answers[won].json()["edition"]) == (200, 2)
    kinds = await put(doors.database, "SELECT kind, detail ->> 'fields' FROM events WHERE kind = 'edited'")
    assert kinds == [("edited", '["title"]')]


async def test_only_what_is_given_is_written(doors: Doors) -> None:
    """And an edit of nothing writes nothing."""
    record_id = await a_record(doors.database, doors.store, doors.anna, description="Long")
    async with doors.client() as client:
        path = f"/v1/records/{record_id}"
        shown = (await client.patch(path, json={"topics": ["b", "", "a"], "edition": 1})).json()
        assert (shown["title"], shown["description"], shown["topics"]) == ("A talk", "Long", ["b", "a"])
        shown = (await client.patch(path, json={"title": "", "description": "", "edition": 2})).json()
        assert (shown["title"], shown["description"], shown["edition"]) == ("", "", 3)
        assert (await client.patch(path, json={"edition": 3})).json()["edition"] == 3
        assert (await client.patch(path, json={"edition": 2})).status_code == 409


async def test_if_match_names_an_edition_too(doors: Doors, problem: Problem) -> None:
    """By any ETag of it, whatever the service has done since; * for any; a weak or foreign tag for none."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    async with doors.client() as client:
        path = f"/v1/records/{record_id}"
        etag = (await client.get(path)).headers["etag"]
        await change(doors.database, record_id, "recognised_seconds = 5")
        edit = partial(client.patch, path)
        answer = await edit(json={"title": "One"}, headers={"If-Match": etag})
        assert (answer.status_code, answer.json()["edition"]) == (200, 2)
        assert answer.headers["etag"] == (await client.get(path)).headers["etag"]
        problem_of = await edit(json={"title": "Two"}, headers={"If-Match": etag})
        assert problem_of.status_code == 409
        assert (await edit(json={"title": "Two"}, headers={"If-Match": "*"})).json()["edition"] == 3
        for wrong in (f"W/{etag}", '"x"', "3"):
            assert (await edit(json={"title": "Three"}, headers={"If-Match": wrong})).status_code == 409
        both = await edit(json={"title": "Three", "edition": 2}, headers={"If-Match": '"3"'})
        problem(both, 422, "invalid_edit")
        problem(await edit(json={"title": "Three"}), 428, "edition_required")


DEEP = 100_000


NO_EDITS: tuple[tuple[bytes, int, str], ...] = (
    (b"", 400, "malformed_json"),
    (b"{", 400, "malformed_json"),
    (b"[]", 400, "malformed_json"),
    (b"null", 400, "malformed_json"),
    (b'{"title": "\xff"}', 400, "malformed_json"),
    (b'{"title": NaN}', 400, "malformed_json"),
    (b'{"edition": ' + b"9" * 5000 + b"}", 400, "malformed_json"),
    (b"[" * DEEP, 400, "malformed_json"),
    (b'{"title":' * (DEEP // 10), 400, "malformed_json"),
    (b'{"topics": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", 400, "malformed_json"),
    (b'{"title": "' + b"x" * 200_000 + b'"}', 413, "too_large"),
    (b'{"title": null, "edition": 1}', 422, "invalid_edit"),
    (b'{"title": 1, "edition": 1}', 422, "invalid_edit"),
    (b'{"topics": "one", "edition": 1}', 422, "invalid_edit"),
    (b'{"topics": [1], "edition": 1}', 422, "invalid_edit"),
    (b'{"edition": true}', 422, "invalid_edit"),
    (b'{"edition": 1.0}', 422, "invalid_edit"),
    (b'{"edition": 0}', 422, "invalid_edit"),
    (b'{"edition": 2147483648}', 422, "invalid_edit"),
    (b'{"milestone": "done", "edition": 1}', 422, "invalid_edit"),
    (b'{"title": "\\u0000", "edition": 1}', 422, "invalid_options"),
    (b'{"title": "\\ud800", "edition": 1}', 422, "invalid_options"),
    (b'{"title": "' + b"x" * 501 + b'", "edition": 1}', 422, "invalid_options"),
    (b'{"topics": ' + json.dumps(["x"] * 51).encode() + b', "edition": 1}', 422, "invalid_options"),
)


async def test_an_edit_that_is_none_is_refused_in_a_sentence(doors: Doors, problem: Problem) -> None:
    """Whatever it holds, and the record stays as it was."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    before = await read_readiness(doors.database, record_id, None)
    async with doors.client() as client:
        for content, status, code in NO_EDITS:
            answer = await client.patch(f"/v1/records/{record_id}", content=content, headers=HEADERS)
            problem(answer, status, code)
            assert (await client.get("/healthz")).status_code == 200
    assert await read_readiness(doors.database, record_id, None) == before


async def test_an_edit_is_json_and_says_so(doors: Doors, problem: Problem) -> None:
    """A form is not taken for one."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    async with doors.client() as client:
        answer = await client.patch(f"/v1/records/{record_id}", data={"title": "One"})
    problem(answer, 415, "not_json")


async def test_an_edit_is_not_waited_for_for_ever(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slowly its letters come."""
    monkeypatch.setattr(json_body, "_PATIENCE_SECONDS", 0.3)
    record_id = await a_record(doors.database, doors.store, doors.anna)
    head = doors.head(
        "Content-Type: application/json",
        "Content-Length: 100",
        path=f"/v1/records/{record_id}",
        method="PATCH",
    )
    async with await trio.open_unix_socket(str(doors.socket)) as stream:
        await stream.send_all(head + b'{"ti')
        with trio.fail_after(10):
            answer = await stream.receive_some()
    assert answer.startswith(b"HTTP/1.1 408")


async def test_the_verbs_do_what_they_say_once(doors: Doors, problem: Problem) -> None:
    """Each with the record as it is then; a second time each is told what is the case."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    async with doors.client() as client:
        path = f"/v1/records/{record_id}"
        problem(await client.post(f"{path}/lift"), 409, "not_stopped")
        problem(await client.post(f"{path}/undelete"), 409, "not_deleted")
        stopped = await client.post(f"{path}/stop")
        assert (stopped.status_code, stopped.json()["stop"]["code"]) == (200, "stopped_by_owner")
        problem(await client.post(f"{path}/stop"), 409, "already_stopped")
        assert (await client.post(f"{path}/lift")).json()["stopped"] is False
        deleted = await client.delete(path)
        assert (deleted.status_code, deleted.content) == (204, b"")
        for ask in (client.get, client.delete):
            problem(await ask(path), 404, "not_found")
        for verb in ("stop", "lift", "events", "transcript", "audio"):
            asked: Any = client.post if verb in ("stop", "lift") else client.get
            problem(await asked(f"{path}/{verb}"), 404, "not_found")
        assert (await client.post(f"{path}/undelete")).json()["id"] == str(record_id)
        await change(doors.database, record_id, "milestone = 'done', lane = NULL, recognised_text = 'x'")
        problem(await client.post(f"{path}/stop"), 409, "past_stopping")
        events = (await client.get(f"{path}/events")).json()["events"]
    assert [(each["kind"], each["by"]) for each in events] == [
        (kind, "anna") for kind in ("accepted", "stopped", "lifted", "deleted", "undeleted")
    ]

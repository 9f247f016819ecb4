"""Lists of records, page by page, narrowed and searched."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx

from storage.claim import Claim
from storage.ids import new_id
from tests.builders import claims_of
from tests.daemon.intake.conftest import Doors
from tests.making import LANE, a_record, an_account, change, put

Problem = Callable[[httpx.Response, int, str], str]


async def listed(client: httpx.AsyncClient, **query: Any) -> list[str]:
    """Return the ids on one page."""
    answer = await client.get("/v1/records", params=query)
    assert answer.status_code == 200, answer.text
    return [record["id"] for record in answer.json()["records"]]


async def test_every_record_is_on_one_page(doors: Doors) -> None:
    """The newest first, also among those of one moment, and whatever comes while one turns the pages."""
    ids = [await a_record(doors.database, doors.store, doors.anna) for _ in range(5)]
    _, other = await an_account(doors.database, "boris")
    await put(doors.database, "UPDATE records SET created_at = '2026-01-01 12:00:00.123456+00'")
    seen: list[str] = []
    async with doors.client() as client:
        cursor = None
        while True:
            query = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
            page = (await client.get("/v1/records", params=query)).json()
            seen += [record["id"] for record in page["records"]]
            await a_record(doors.database, doors.store, doors.anna)  # newer than all of them
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == sorted(map(str, ids), reverse=True)
        assert set(page["records"][0]) == set((await client.get(f"/v1/records/{ids[0]}")).json()) - {"text"}
        assert "queue_position" not in page["records"][0]["progress"]
    async with doors.client(other) as client:
        assert await listed(client) == []


async def test_a_full_last_page_has_no_next(doors: Doors) -> None:
    """Nobody is sent for an empty page."""
    for _ in range(2):
        await a_record(doors.database, doors.store, doors.anna)
    async with doors.client() as client:
        assert (await client.get("/v1/records", params={"limit": 2})).json()["next_cursor"] is None


async def test_lists_can_be_narrowed(doors: Doors) -> None:
    """By milestone and by the flag."""
    new, stopped, done = [str(await a_record(doors.database, doors.store, doors.anna)) for _ in range(3)]
    flag = "stop_code = 'silent', stop_reason = 'x', stopped_at = now(), stopped_by = 'x'"
    await change(doors.database, UUID(stopped), flag)
    await change(doors.database, UUID(done), "milestone = 'done', lane = NULL, recognised_text = ''")
    async with doors.client() as client:
        assert await listed(client, stopped="true") == [stopped]
        assert await listed(client, stopped="false") == [done, new]
        assert await listed(client, milestone="done") == [done]
        assert await listed(client, milestone="done", stopped="true") == []
        answer = await client.get("/v1/records", params={"milestone": "done"})
    assert answer.json()["records"][0]["audio"]["warnings"] == ["silent"]


CURSORS = (
    "",
    "x",
    "A" * 32,
    "_" * 32,
    "é" * 32,
    "A" * 31 + "=",
    "." * 32,
    urlsafe_b64encode(b"\x7f" + b"\xff" * 23).decode(),
    urlsafe_b64encode(b"\x80" + b"\x00" * 23).decode(),
    json.dumps({"id": 1}),
    "%00",
)


async def test_a_cursor_that_we_never_gave(doors: Doors, problem: Problem) -> None:
    """Is refused in a sentence, or read as a place like any other; it opens nothing."""
    await a_record(doors.database, doors.store, doors.anna)
    async with doors.client() as client:
        for cursor in CURSORS:
            answer = await client.get("/v1/records", params={"cursor": cursor})
            if answer.status_code != 200:
                problem(answer, 400, "invalid_cursor")


async def test_a_query_is_told_all_its_faults(doors: Doors, problem: Problem) -> None:
    """By name, in one sentence."""
    async with doors.client() as client:
        answer = await client.get("/v1/records?limit=0&stopped=maybe&milestone=none&order=asc&q=%00")
    detail = problem(answer, 400, "invalid_query")
    for phrase in ("limit must be", "stopped must be", "milestone must be", "'order' is no", "q holds a NUL"):
        assert phrase in detail


TALKS = {
    "ru": {"title": "Совещание о рубежах", "text": "Мы обсуждали дороги и мосты."},
    "en": {"title": "Weekly meeting", "text": "The bridges were discussed, and the roads."},
    "mixed": {"title": "Q3 отчёт", "text": "Наш pipeline упал дважды, deploy прошёл."},
    "plain": {"title": "", "text": "Ничего особенного."},
}


SEARCHES: tuple[tuple[str, set[str]], ...] = (
    ("рубеж", {"ru"}),
    ("дорога", {"ru"}),
    ("МОСТ", {"ru"}),
    ("bridge", {"en"}),
    ("meetings", {"en"}),
    ("pipelines", {"mixed"}),
    ("упасть OR meeting", {"en"}),
    ("мост or bridge", {"ru", "en"}),
    ('"дороги и мосты"', {"ru"}),
    ('"мосты и дороги"', set()),
    ("discussed -roads", set()),
    ("deploy отчет", {"mixed"}),
    ("ничего", set()),
    ("budget", {"ru", "en", "mixed", "plain"}),
    ("planning", {"en"}),
    ("hearing", {"plain"}),
    ("никогда", set()),
    ("' OR 1=1 --", set()),
    ("%", set()),
    ("(((", set()),
    ("a & | ! <-> :* \\", set()),
    ("x" * 500, set()),
)


async def test_s_i27_words_are_found_in_any_of_their_forms_and_only_one_s_own(doors: Doors) -> None:
    """In titles, descriptions, topics, file names and texts; another account's words are not."""
    boris, _ = await an_account(doors.database, "boris")
    ids = {}
    for account in (boris, doors.anna):
        for name, talk in TALKS.items():
            record_id = await a_record(
                doors.database,
                doors.store,
                account,
                title=talk["title"],
                description="About the budgets" if name != "mixed" else "",
                topics=("plans",) if name == "en" else ("budget",),
                filename="hearing_2026-11-30.final.wav" if name == "plain" else "talk.wav",
            )
            text = f"milestone = 'done', lane = NULL, recognised_text = '{talk['text']}'"
            await change(doors.database, record_id, text)
            ids[str(record_id)] = name
    async with doors.client() as client:
        for search, found in SEARCHES:
            pages = await listed(client, q=search)
            assert {ids[each] for each in pages} == found, search
            assert len(pages) == len(found), search
    waiting = await a_record(doors.database, doors.store, doors.anna, title="To be claimed")
    before = await put(doors.database, "SELECT xmin, ctid, record_id FROM record_words ORDER BY record_id")
    claims = claims_of(doors.database, doors.store.id)
    token = new_id()
    claim = await claims.claim(token, [LANE])
    assert isinstance(claim, Claim)
    assert claim.record_id == waiting
    await claims.renew([token])
    await claims.wake()
    await claims.give_back(token, "a test")
    after = await put(doors.database, "SELECT xmin, ctid, record_id FROM record_words ORDER BY record_id")
    assert after == before


async def test_what_is_searched_follows_what_is_written(doors: Doors) -> None:
    """An edit, a text that is recognised anew, a deletion; an empty search is none."""
    record_id = await a_record(doors.database, doors.store, doors.anna, title="Bridges")
    async with doors.client() as client:
        assert await listed(client, q="bridge") == [str(record_id)] == await listed(client, q="")
        edited = await client.patch(f"/v1/records/{record_id}", json={"title": "Roads", "edition": 1})
        assert edited.status_code == 200
        assert (await listed(client, q="bridge"), await listed(client, q="road")) == ([], [str(record_id)])
        await change(doors.database, record_id, "recognised_text = 'a tunnel'")
        assert await listed(client, q="tunnels") == [str(record_id)]
        await change(doors.database, record_id, "recognised_text = NULL")
        assert await listed(client, q="tunnel") == []
        await client.delete(f"/v1/records/{record_id}")
        assert await listed(client, q="road") == []

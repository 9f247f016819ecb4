"""The readiness poll: known answers, waits, and what ends them."""

from collections.abc import Callable

import httpx
import pytest
import trio
from attrs import evolve

from daemon.intake import changes
from storage.accounts import list_tokens, revoke_token
from storage.owner import delete, lift, stop
from tests.daemon.intake.conftest import Doors
from tests.making import a_record, change, put
from tests.waiting import until

Problem = Callable[[httpx.Response, int, str], str]
DONE = "milestone = 'done', lane = NULL, recognised_text = 'All of it.'"


async def test_s_i28_nothing_new_is_told_as_nothing_new(doors: Doors) -> None:
    """The tag is of all that is shown but the place in the queue; a 304 has no body and says when to come."""
    ahead = await a_record(doors.database, doors.store, doors.anna)
    record_id = await a_record(doors.database, doors.store, doors.anna)
    async with doors.client() as client:
        path = f"/v1/records/{record_id}"
        first = await client.get(path)
        etag = first.headers["etag"]
        assert first.json()["progress"]["queue_position"] == 2
        await delete(doors.database, ahead, None, "x")
        again = await client.get(path, headers={"If-None-Match": f'"x", W/{etag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert again.headers["retry-after"] == "1"
        assert (await client.get(path)).json()["progress"]["queue_position"] == 1
        for changed in (
            "failures = 1",
            "decoded_seconds = 60",
            "recognised_seconds = 30",
            "title = 'Another'",
            "edition = 2",
            "audio_warnings = '{cut_off}'",
            "stop_code = 'silent', stop_reason = 'x', stopped_at = now(), stopped_by = 'x'",
            f"stop_code = NULL, stop_reason = NULL, stopped_at = NULL, stopped_by = NULL, {DONE}",
        ):
            await change(doors.database, record_id, changed)
            answer = await client.get(path, headers={"If-None-Match": etag})
            assert (answer.status_code, answer.headers["etag"] != etag) == (200, True), changed
            etag = answer.headers["etag"]
            assert (await client.get(path, headers={"If-None-Match": etag})).status_code == 304
        answer = await client.get(path)
        assert answer.json()["text"] == "All of it."
        assert "retry-after" not in answer.headers
        head = await client.head(path)
        assert (head.status_code, head.headers["etag"], head.content) == (200, etag, b"")


async def waited(doors: Doors, path: str, into: list[httpx.Response], **headers: str) -> None:
    """Poll with a wait and keep the answer."""
    async with doors.client() as client:
        into.append(await client.get(path, headers={"Prefer": "wait=20", **headers}))


async def test_a_wait_ends_with_a_change(doors: Doors, nursery: trio.Nursery) -> None:
    """Of anything that is shown; until then there is no answer."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    path, answers = f"/v1/records/{record_id}", list[httpx.Response]()
    waiting = doors.app.state.doors.polls.changes

    async def one(deed: Callable[[], object]) -> httpx.Response:
        nursery.start_soon(waited, doors, path, answers)
        await until(lambda: waiting.waiting == 1)
        await trio.sleep(0.1)
        assert answers == []
        await deed()  # type: ignore[misc]  # each of them is awaited
        await until(lambda: bool(answers))
        return answers.pop()

    answer = await one(lambda: change(doors.database, record_id, "recognised_seconds = 5"))
    assert (answer.status_code, answer.headers["preference-applied"]) == (200, "wait")
    assert answer.json()["progress"]["recognised_seconds"] == 5
    answer = await one(lambda: stop(doors.database, record_id, None, "x"))
    assert answer.json()["stopped"] is True
    await lift(doors.database, record_id, None, "x")
    answer = await one(lambda: change(doors.database, record_id, DONE))
    assert answer.json()["text"] == "All of it."
    await change(doors.database, record_id, "milestone = 'converted', lane = 'whisper'")
    answer = await one(lambda: delete(doors.database, record_id, None, "x"))
    assert answer.status_code == 404
    assert waiting.waiting == 0


async def test_a_wait_ends_with_its_time(doors: Doors) -> None:
    """With 304 for who knows, with the record for who does not."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    async with doors.client() as client:
        path, wait = f"/v1/records/{record_id}", {"Prefer": "wait=1"}
        began = trio.current_time()
        answer = await client.get(path, headers=wait)
        assert trio.current_time() - began >= 1
        assert (answer.status_code, answer.headers["preference-applied"]) == (200, "wait")
        known = {"If-None-Match": answer.headers["etag"]}
        assert (await client.get(path, headers=wait | known)).status_code == 304


async def test_who_has_not_seen_it_is_answered_at_once(doors: Doors) -> None:
    """As is who asks, with no tag, for what does not change by itself."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    async with doors.client() as client:
        path, wait = f"/v1/records/{record_id}", {"Prefer": "wait=20"}
        with trio.fail_after(10):
            answer = await client.get(path, headers=wait | {"If-None-Match": '"1.other"'})
            assert (answer.status_code, "preference-applied" in answer.headers) == (200, False)
            await change(doors.database, record_id, DONE)
            assert (await client.get(path, headers=wait)).json()["text"] == "All of it."


async def test_waits_are_bounded_in_number(doors: Doors, nursery: trio.Nursery) -> None:
    """Whoever finds no place is answered at once, as if no wait had been asked for."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    path, answers = f"/v1/records/{record_id}", list[httpx.Response]()
    waiting = doors.app.state.doors.polls.changes
    waiting.most = 1
    nursery.start_soon(waited, doors, path, answers)
    await until(lambda: waiting.waiting == 1)
    async with doors.client() as client:
        with trio.fail_after(10):
            answer = await client.get(path, headers={"Prefer": "wait=20"})
    assert (answer.status_code, "preference-applied" in answer.headers) == (200, False)
    waiting.let_go()
    await until(lambda: bool(answers))
    assert answers[0].status_code == 200


async def test_a_stop_of_the_service_lets_everybody_go(doors: Doors, nursery: trio.Nursery) -> None:
    """With the record as it is; nobody waits from then on."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    path, answers = f"/v1/records/{record_id}", list[httpx.Response]()
    waiting = doors.app.state.doors.polls.changes
    nursery.start_soon(waited, doors, path, answers)
    await until(lambda: waiting.waiting == 1)
    waiting.let_go()
    await until(lambda: len(answers) == 1)
    with trio.fail_after(10):
        await waited(doors, path, answers)
    assert [answer.status_code for answer in answers] == [200, 200]


async def test_a_sender_who_has_gone_keeps_no_place(doors: Doors, nursery: trio.Nursery) -> None:
    """However long it would have waited."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    waiting = doors.app.state.doors.polls.changes
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as leaving:
            leaving.start_soon(waited, doors, f"/v1/records/{record_id}", [])
            await until(lambda: waiting.waiting == 1)
            scope.cancel()
    await until(lambda: waiting.waiting == 0)


async def test_a_token_revoked_during_the_wait_opens_nothing(
    doors: Doors, nursery: trio.Nursery, problem: Problem
) -> None:
    """Not even what it had asked for before."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    answers = list[httpx.Response]()
    nursery.start_soon(waited, doors, f"/v1/records/{record_id}", answers)
    await until(lambda: doors.app.state.doors.polls.changes.waiting == 1)
    [token] = await list_tokens(doors.database, doors.anna.id)
    await revoke_token(doors.database, token.id)
    await change(doors.database, record_id, DONE)
    await until(lambda: bool(answers))
    problem(answers[0], 401, "unauthorized")


async def test_without_notifications_those_who_wait_look_by_themselves(
    doors: Doors, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that nobody tells of is seen at the next look."""
    monkeypatch.setattr(changes, "LOOK_SECONDS", 0.2)
    record_id = await a_record(doors.database, doors.store, doors.anna)
    answers = list[httpx.Response]()
    waiting = doors.app.state.doors.polls.changes
    monkeypatch.setattr(waiting, "hears", False)
    monkeypatch.setattr(waiting, "hear", lambda _: None)
    nursery.start_soon(waited, doors, f"/v1/records/{record_id}", answers)
    await until(lambda: waiting.waiting == 1)
    await change(doors.database, record_id, "failures = 1")  # of which nobody is told anyway
    await until(lambda: bool(answers))
    assert answers[0].json()["failures"] == 1


async def test_what_anybody_says_on_the_channel_harms_nobody(doors: Doors) -> None:
    """Neither nonsense nor the id of a record that nobody waits for."""
    waiting = doors.app.state.doors.polls.changes
    for told in ("", "x", "0" * 5000, str(doors.anna.id)):
        waiting.hear(told)


async def test_a_listener_that_lost_its_connection_hears_again(
    doors: Doors, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changed meanwhile is looked for, and what changes then is told."""
    monkeypatch.setattr(changes, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(changes, "LOOK_SECONDS", 60.0)  # so that only what is heard can end a wait
    record_id = await a_record(doors.database, doors.store, doors.anna)
    answers = list[httpx.Response]()
    waiting = doors.app.state.doors.polls.changes
    await until(lambda: waiting.hears)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = %s AND datname = %s"
    listening = f'LISTEN "{changes.CHANNEL}"'
    [[name]] = await put(doors.database, "SELECT current_database()")
    assert await put(doors.database, ended, listening, name) == [(True,)]
    await until(lambda: not waiting.hears)
    await until(lambda: waiting.hears)
    nursery.start_soon(waited, doors, f"/v1/records/{record_id}", answers)
    await until(lambda: waiting.waiting == 1)
    await trio.sleep(0.2)
    await change(doors.database, record_id, DONE)
    await until(lambda: bool(answers))
    assert answers[0].json()["text"] == "All of it."


async def test_where_notifications_are_switched_off_nobody_listens(doors: Doors) -> None:
    """As behind a pooler: the looks alone find what changes."""
    with trio.fail_after(5):
        await changes.Changes().listen(evolve(doors.database, listens=False))

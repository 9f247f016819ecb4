"""`Idempotency-Key`: said often, done once."""

import os
from collections.abc import Callable
from functools import partial
from uuid import uuid4

import httpx
import pytest
import trio
from attrs import evolve

from daemon.intake.keys import while_held
from storage import keys
from storage.database import open_database
from storage.keys import HeldKey, KeyInUse, UsedKey, forget_keys, take_key
from storage.submissions import accept_under_key
from tests.daemon.intake.conftest import LARGEST, Doors
from tests.making import a_submission, an_account, put
from tests.waiting import until
from tests.wire import open_wire

Problem = Callable[[httpx.Response, int, str], str]
KEY = {"Idempotency-Key": '"7f00-a"'}


async def test_s_i7_twenty_sends_of_one_key_make_one_record(doors: Doors, problem: Problem) -> None:
    """One gets the 201 and the others a 409 with a time; later each of them gets that same 201."""
    content = os.urandom(300_000)
    head = doors.head(f"Content-Length: {len(content)}", "Idempotency-Key: k", "Connection: close")
    got: list[httpx.Response] = []
    going = trio.Event()

    async def send() -> None:
        async with await trio.open_unix_socket(str(doors.socket)) as stream, trio.open_nursery() as both:
            await stream.send_all(head + content[:1000])

            async def go_on() -> None:
                await going.wait()
                await stream.send_all(content[1000:])

            both.start_soon(go_on)
            got.append(answer_of(b"".join([part async for part in stream])))
            both.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(send)
        await until(lambda: len(got) == 19)
        going.set()
    for answer in got[:19]:
        problem(answer, 409, "idempotency_key_in_use")
        assert int(answer.headers["retry-after"]) > 0
        assert answer.headers["connection"] == "close"
    first = got[19]
    assert first.status_code == 201
    await put(doors.database, "UPDATE records SET milestone_since = clock_timestamp(), title = 'moved on'")
    again: list[httpx.Response] = []

    async def send_again() -> None:
        async with doors.client() as client:
            again.append(await client.post("/v1/records", headers={"Idempotency-Key": "k"}, content=content))

    async with trio.open_nursery() as nursery:
        for _ in range(19):
            nursery.start_soon(send_again)
    for answer in again:
        assert (answer.status_code, answer.content) == (201, first.content)
        assert answer.headers["location"] == first.headers["location"]
    assert await doors.left() == (1, [f"records/{first.json()['id']}/source"])


def answer_of(said: bytes) -> httpx.Response:
    """Return the one answer that these bytes are."""
    head, _, content = said.partition(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    pairs = [(name, value.strip()) for name, _, value in (line.partition(b":") for line in headers)]
    return httpx.Response(int(status.split()[1]), headers=pairs, content=content)


@pytest.mark.parametrize("changed", ["bytes", "title", "file name"])
async def test_another_payload_under_a_used_key_is_refused(
    doors: Doors, problem: Problem, changed: str
) -> None:
    """422, whatever the difference; a form with the same file and options is no other payload."""
    async with doors.client() as client:
        options = {"title": "Plan", "filename": "a.wav"}
        first = await client.post("/v1/records", params=options, headers=KEY, content=b"abc")
        form = await client.post(
            "/v1/records", data={"title": "Plan"}, files={"file": ("a.wav", b"abc")}, headers=KEY
        )
        assert (form.status_code, form.json()) == (201, first.json())
        content = b"abd" if changed == "bytes" else b"abc"
        if changed == "title":
            options["title"] = "Plan B"
        if changed == "file name":
            options["filename"] = "b.wav"
        answer = await client.post("/v1/records", params=options, headers=KEY, content=content)
        problem(answer, 422, "idempotency_key_reused")
    assert (await doors.left())[0] == 1


async def test_a_submission_that_comes_to_nothing_frees_its_key(doors: Doors, problem: Problem) -> None:
    """Refused for options, size or emptiness, or broken off: the next one under the key counts."""
    async with doors.client() as client:
        for content, options in ((b"", {}), (b"x", {"track": "-1"}), (b"x" * (LARGEST + 1), {})):
            answer = await client.post("/v1/records", params=options, headers=KEY, content=content)
            assert answer.status_code in (400, 413, 422)
        async with await trio.open_unix_socket(str(doors.socket)) as stream:
            key = f"Idempotency-Key: {KEY['Idempotency-Key']}"
            await stream.send_all(doors.head("Content-Length: 9000", key) + b"x")
            await until(lambda: doors.incoming() == 1)
            problem(
                await client.post("/v1/records", headers=KEY, content=b"y"), 409, "idempotency_key_in_use"
            )

        async def freed() -> bool:
            return await put(doors.database, "SELECT 1 FROM submission_keys") == []

        await until(freed)
        assert (await client.post("/v1/records", headers=KEY, content=b"z")).status_code == 201


async def test_keys_are_of_their_account(doors: Doors) -> None:
    """The same key of another account is another key."""
    _, other = await an_account(doors.database, "boris")
    ids = set()
    for secret in (doors.secret, other):
        async with doors.client(secret) as client:
            ids.add((await client.post("/v1/records", headers=KEY, content=b"x")).json()["id"])
    assert len(ids) == 2


async def test_what_is_no_key_is_refused(doors: Doors, problem: Problem) -> None:
    """Told at once, in a sentence."""
    async with doors.client() as client:
        for key in ("", '""', '"a', 'a"', '"a\tb"', "a b", "x" * 256, '"я"', '"a", "b"'):
            headers = [(b"Idempotency-Key", key.encode())]
            answer = await client.post("/v1/records", headers=headers, content=b"x")
            problem(answer, 400, "invalid_idempotency_key")
        twice = [(b"Idempotency-Key", b"a"), (b"Idempotency-Key", b"a")]
        answer = await client.post("/v1/records", headers=twice, content=b"x")
        problem(answer, 400, "invalid_idempotency_key")
    assert await doors.left() == (0, [])


async def test_a_key_in_quotes_and_bare_is_the_same(doors: Doors) -> None:
    """Senders write it either way."""
    async with doors.client() as client:
        one = await client.post("/v1/records", headers={"Idempotency-Key": '"a\\\\b"'}, content=b"x")
        two = await client.post("/v1/records", headers={"Idempotency-Key": "a\\b"}, content=b"x")
        assert (one.status_code, one.content) == (201, two.content)


async def test_a_key_whose_holder_died_is_free_within_a_minute(doors: Doors) -> None:
    """The lease ends by itself; who had it then makes no record any more."""
    assert keys.LEASE_SECONDS < 60
    taken = partial(take_key, doors.database, doors.anna.id, "k")
    assert isinstance(await taken(), HeldKey)
    assert await taken() == KeyInUse()
    lapsed = "UPDATE submission_keys SET lease_until = clock_timestamp() - interval '1 second'"
    await put(doors.database, lapsed)
    assert isinstance(await taken(), HeldKey)
    assert await taken() == KeyInUse()


async def test_a_lease_is_renewed_while_its_submission_is_received(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slow the sender is."""
    monkeypatch.setattr("daemon.intake.keys._RENEW_SECONDS", 0.01)
    held = await take_key(doors.database, doors.anna.id, "k")
    assert isinstance(held, HeldKey)
    [(before,)] = await put(doors.database, "SELECT lease_until FROM submission_keys")

    async def renewed() -> bool:
        [(now,)] = await put(doors.database, "SELECT lease_until FROM submission_keys")
        return bool(now > before)

    await while_held(doors.database, held, partial(until, renewed))
    assert len(await put(doors.database, "SELECT 1 FROM submission_keys")) == 1


async def test_a_sender_that_lost_its_key_makes_no_second_record(doors: Doors, problem: Problem) -> None:
    """Its lease ran out and another finished under the key: 409 now, the other's answer later."""
    async with await trio.open_unix_socket(str(doors.socket)) as stream:
        await stream.send_all(doors.head("Content-Length: 3", "Idempotency-Key: k") + b"a")
        await until(lambda: doors.incoming() == 1)
        await put(doors.database, "UPDATE submission_keys SET lease_until = '2026-01-01'")
        async with doors.client() as client:
            other = await client.post("/v1/records", headers={"Idempotency-Key": "k"}, content=b"abc")
            assert other.status_code == 201
            await stream.send_all(b"bc")
            answer = await stream.receive_some()
            assert answer.startswith(b"HTTP/1.1 409 ")
            again = await client.post("/v1/records", headers={"Idempotency-Key": "k"}, content=b"abc")
            assert (again.status_code, again.content) == (201, other.content)
    await doors.comes_to(1, [f"records/{other.json()['id']}/source"])


async def test_a_key_is_kept_for_seven_days(doors: Doors) -> None:
    """Then it is forgotten, and its next use is a new one; one that is just being received is not."""
    async with doors.client() as client:
        first = await client.post("/v1/records", headers=KEY, content=b"x")
        await put(doors.database, "UPDATE submission_keys SET taken_at = taken_at - interval '167 hours'")
        await put(doors.database, "UPDATE submission_keys SET lease_until = taken_at")
        await forget_keys(doors.database)
        assert (await client.post("/v1/records", headers=KEY, content=b"x")).content == first.content
        await put(doors.database, "UPDATE submission_keys SET taken_at = taken_at - interval '2 hours'")
        second = await client.post("/v1/records", headers=KEY, content=b"x")
        assert second.status_code == 201
        assert second.content != first.content
    held = await take_key(doors.database, doors.anna.id, "slow")
    assert isinstance(held, HeldKey)
    await put(doors.database, "UPDATE submission_keys SET taken_at = taken_at - interval '8 days'")
    await put(doors.database, "UPDATE submission_keys SET lease_until = taken_at WHERE key <> 'slow'")
    await forget_keys(doors.database)
    assert await put(doors.database, "SELECT key FROM submission_keys") == [("slow",)]


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("word", [b"submission_keys SET record_id", b"COMMIT", b"coalesce(answer"])
async def test_s_i5_an_unknown_commit_under_a_key_neither_loses_nor_doubles(
    doors: Doors, dsn: str, monkeypatch: pytest.MonkeyPatch, word: bytes, *, carried_out: bool
) -> None:
    """Cut before or after any of its writes, a submission is said again and makes one record."""
    monkeypatch.setattr("storage.submissions._PAUSE", 0.01)
    async with (
        open_wire(dsn) as wire,
        open_database(wire.dsn, pool_size=2, call_seconds=5, statement_seconds=5, listen=True) as far,
    ):
        doors.app.state.doors = evolve(doors.app.state.doors, database=far)
        (wire.cut_after if carried_out else wire.cut_before)(word)
        async with doors.client() as client:
            first = await client.post("/v1/records", headers=KEY, content=b"abc")
            again = await client.post("/v1/records", headers=KEY, content=b"abc")
        assert wire.cuts == []
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
    path = f"records/{first.json()['id']}/source"
    assert await doors.left() == (1, [path])
    assert doors.store.path(path).read_bytes() == b"abc"
    assert await put(doors.database, "SELECT kind FROM events") == [("accepted",)]


async def test_a_commit_that_stays_unknown_leaves_one_record_or_none(
    doors: Doors, dsn: str, monkeypatch: pytest.MonkeyPatch, problem: Problem
) -> None:
    """The sender is told 503; when it comes again it gets the record that there is, and no other."""
    monkeypatch.setattr("storage.submissions.ACCEPT_SECONDS", 0.1)
    async with (
        open_wire(dsn) as wire,
        open_database(wire.dsn, pool_size=2, call_seconds=1, statement_seconds=1, listen=True) as far,
    ):
        doors.app.state.doors = evolve(doors.app.state.doors, database=far)
        wire.cut_after(b"COMMIT")
        wire.cut_before(b"submission_keys")
        async with doors.client() as client:
            first = await client.post("/v1/records", headers=KEY, content=b"abc")
            problem(first, 503, "database_unavailable")
            [(record_id,)] = await put(doors.database, "SELECT id FROM records")

            async def answered() -> bool:
                again = await client.post("/v1/records", headers=KEY, content=b"abc")
                return again.status_code == 201 and again.json()["id"] == str(record_id)

            await until(answered)
    assert await doors.left() == (1, [f"records/{record_id}/source"])


async def test_an_accept_said_again_keeps_its_record_though_its_key_is_gone(doors: Doors) -> None:
    """The account was removed and its records handed over before the lost answer was asked for again."""
    held = await take_key(doors.database, doors.anna.id, "k")
    assert isinstance(held, HeldKey)
    submission = await a_submission(doors.store, doors.anna)
    said = partial(accept_under_key, doors.database, submission, held, bytes(32), lane="convert")
    await said()
    await put(doors.database, "DELETE FROM submission_keys")
    assert await said() == submission.id


async def test_a_used_key_goes_with_its_record(doors: Doors) -> None:
    """When the record is gone for good nothing of it stays, its title neither."""
    async with doors.client() as client:
        await client.post("/v1/records", headers=KEY, params={"title": "secret"}, content=b"x")
    await put(doors.database, "DELETE FROM records")
    assert await put(doors.database, "SELECT 1 FROM submission_keys") == []
    used = UsedKey(doors.anna.id, "k", uuid4(), bytes(32), None)
    assert await keys.keep_answer(doors.database, used.account_id, used.key, used.record_id, {"a": 1}) == {
        "a": 1
    }

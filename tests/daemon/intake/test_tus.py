"""Resumable uploads: tus 1.0.0 at the doors."""

import hashlib
import os
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
import trio
from attrs import evolve
from trio.testing import MockClock

from daemon.intake import problems as refusals
from daemon.intake.turns import PATIENCE_SECONDS, Turns
from storage.accounts import remove_account
from storage.database import open_database
from storage.ids import new_id
from storage.tidying import tidy
from storage.upload import Upload
from storage.upload_files import resumed
from storage.uploads import drop_upload, hold_upload
from tests.builders import put_store
from tests.daemon.intake.conftest import LARGEST, Doors
from tests.making import an_account, put
from tests.waiting import until
from tests.wire import open_wire

Problem = Callable[[httpx.Response, int, str], str]
TUS = {"Tus-Resumable": "1.0.0"}
PART = {**TUS, "Content-Type": "application/offset+octet-stream"}


def metadata(**pairs: str) -> str:
    """Return `Upload-Metadata` of these pairs."""
    return ",".join(f"{key} {b64encode(text.encode()).decode()}" for key, text in pairs.items())


async def begun(client: httpx.AsyncClient, size: int, **headers: str) -> str:
    """Begin an upload; return where it is."""
    answer = await client.post("/v1/uploads", headers={**TUS, "Upload-Length": str(size), **headers})
    assert answer.status_code == 201, answer.text
    assert answer.headers["tus-resumable"] == "1.0.0"
    return answer.headers["location"]


async def patched(client: httpx.AsyncClient, at: str, offset: int, content: Any, **headers: str) -> Any:
    """Send a part; return the answer."""
    given = {**PART, "Upload-Offset": str(offset), **headers}
    return await client.patch(at, headers={k.replace("_", "-"): v for k, v in given.items()}, content=content)


async def offset_of(client: httpx.AsyncClient, at: str) -> int:
    """Ask how far an upload is."""
    answer = await client.head(at, headers=TUS)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    return int(answer.headers["upload-offset"])


async def test_s_i8_an_upload_in_parts_becomes_a_record(doors: Doors) -> None:
    """Part by part, with its options; the last part names the record, and so does every question after it."""
    content = os.urandom(700_000)
    said = metadata(filename="talk ü.m4a", title="Plan", topics="a, b", language="RU", filetype="audio/mp4")
    async with doors.client() as client:
        at = await begun(client, len(content), **{"Upload-Metadata": said})
        assert (await doors.left())[0] == 0
        answer = httpx.Response(0)
        for start, end in ((0, 300_000), (300_000, 300_000), (300_000, 699_999)):
            answer = await patched(client, at, start, content[start:end])
            assert (answer.status_code, answer.headers["upload-offset"]) == (204, str(end))
            assert "rubezh-record" not in answer.headers
            assert await offset_of(client, at) == end
        kept = parsedate_to_datetime(answer.headers["upload-expires"]) - datetime.now(UTC)
        assert timedelta(hours=71, minutes=59) < kept <= timedelta(hours=72)
        last = await patched(client, at, 699_999, content[699_999:])
        assert (last.status_code, last.headers["upload-offset"]) == (204, "700000")
        record = last.headers["rubezh-record"]
        asked = await client.head(at, headers=TUS)
        assert asked.headers["rubezh-record"] == record
        assert (asked.headers["upload-offset"], asked.headers["upload-length"]) == ("700000", "700000")
        assert asked.headers["upload-metadata"] == said
        shown = (await client.get(f"/v1/records/{record}")).json()
        again = await patched(client, at, 700_000, b"")
        assert (again.status_code, again.headers["rubezh-record"]) == (204, record)
    assert (shown["title"], shown["filename"], shown["topics"]) == ("Plan", "talk ü.m4a", ["a", "b"])
    assert shown["language"] == "ru"
    row = await put(doors.database, "SELECT owner_id, source_bytes, source_sha256, lane FROM records")
    assert row == [(doors.anna.id, 700_000, hashlib.sha256(content).digest(), "convert")]
    assert doors.store.source(UUID(record)).read_bytes() == content
    assert await doors.left() == (1, [f"records/{record}/source"])


async def test_an_upload_may_begin_with_its_first_bytes(doors: Doors) -> None:
    """With some of them, or with all: then the answer names the record."""
    async with doors.client() as client:
        headers = {**PART, "Upload-Length": "6"}
        some = await client.post("/v1/uploads", headers=headers, content=b"abc")
        assert (some.status_code, some.headers["upload-offset"]) == (201, "3")
        rest = await patched(client, some.headers["location"], 3, b"def")
        whole = await client.post("/v1/uploads", headers=headers, content=b"ghijkl")
        assert (whole.status_code, whole.headers["upload-offset"]) == (201, "6")
    for answer, content in ((rest, b"abcdef"), (whole, b"ghijkl")):
        assert doors.store.source(UUID(answer.headers["rubezh-record"])).read_bytes() == content
    assert (await doors.left())[0] == 2


async def test_what_came_of_a_part_that_broke_off_is_kept(doors: Doors) -> None:
    """The sender asks how far it got and goes on from there."""
    content = os.urandom(600_000)
    async with doors.client() as client:
        at = await begun(client, len(content))
        head = doors.head("Content-Length: 600000", "Upload-Offset: 0", *lines(PART), path=at, method="PATCH")
        async with await trio.open_unix_socket(str(doors.socket)) as stream:
            await stream.send_all(head + content[:400_000])
            await until(lambda: size_of(doors, at) >= 262_144)
        offset = await offset_of(client, at)
        assert 0 < offset <= 400_000
        last = await patched(client, at, offset, content[offset:])
    assert doors.store.source(UUID(last.headers["rubezh-record"])).read_bytes() == content


def lines(headers: dict[str, str]) -> list[str]:
    """Return headers as lines."""
    return [f"{name}: {value}" for name, value in headers.items()]


def size_of(doors: Doors, at: str) -> int:
    """Return how many bytes of an upload are in the store."""
    place = doors.store.root / "uploads" / at.rsplit("/", 1)[1]
    return place.stat().st_size if place.exists() else 0


async def test_a_part_that_crawls_is_not_waited_for_and_what_came_of_it_is_kept(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """408, the connection closed, and the sender goes on from there when it can."""
    monkeypatch.setattr("daemon.intake.body.PATIENCE_SECONDS", 0.3)
    async with doors.client() as client:
        at = await begun(client, 10_000)
        head = doors.head("Content-Length: 10000", "Upload-Offset: 0", *lines(PART), path=at, method="PATCH")
        answer = await doors.speak(head, then=b"x" * 5000)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer.lower()
        assert await offset_of(client, at) == 5000


async def test_whoever_comes_again_gets_the_turn(doors: Doors) -> None:
    """A sender whose line is dead need not wait until we notice it; what came on it counts."""
    content = os.urandom(500_000)
    head = ("Content-Length: 500000", "Upload-Offset: 0", *lines(PART))
    async with doors.client() as client, await trio.open_unix_socket(str(doors.socket)) as dead:
        at = await begun(client, len(content))
        await dead.send_all(doors.head(*head, path=at, method="PATCH") + content[:300_000])
        await until(lambda: size_of(doors, at) >= 262_144)
        with trio.fail_after(4):
            offset = await offset_of(client, at)
        assert offset == 300_000
        assert (await dead.receive_some()).startswith(b"HTTP/1.1 409 ")
        last = await patched(client, at, offset, content[offset:])
        assert last.status_code == 204
    assert doors.store.source(UUID(last.headers["rubezh-record"])).read_bytes() == content


@pytest.mark.parametrize("name", ["sha1", "sha256", "md5"])
async def test_s_i9_a_wrong_checksum_keeps_the_offset(doors: Doors, problem: Problem, name: str) -> None:
    """460, and the same part may be sent again; a right one counts, also for the last part."""
    content = os.urandom(300_000)

    def checksum(part: bytes) -> dict[str, str]:
        digest = hashlib.new(name, part).digest()
        return {"Upload_Checksum": f"{name} {b64encode(digest).decode()}"}

    async with doors.client() as client:
        at = await begun(client, 600_000)
        answer = httpx.Response(0)
        for start in (0, 300_000):
            answer = await patched(client, at, start, b"x" * 300_000, **checksum(content))
            problem(answer, 460, "checksum_mismatch")
            assert await offset_of(client, at) == start
            assert (await doors.left())[0] == 0
            answer = await patched(client, at, start, content, **checksum(content))
            assert answer.status_code == 204
    record = answer.headers["rubezh-record"]
    assert doors.store.source(UUID(record)).read_bytes() == 2 * content
    assert await put(doors.database, "SELECT source_sha256 FROM records") == [
        (hashlib.sha256(2 * content).digest(),)
    ]


UNFIT: list[tuple[dict[str, str], int, str]] = [
    ({"Upload-Offset": "1"}, 409, "wrong_offset"),
    ({"Upload-Offset": "x"}, 400, "invalid_header"),
    ({"Upload-Offset": "-1"}, 400, "invalid_header"),
    ({"Upload-Offset": "9" * 100}, 400, "invalid_header"),
    ({"Content-Type": "application/octet-stream"}, 415, "unsupported_media_type"),
    ({"Tus-Resumable": "0.2.2"}, 412, "unsupported_version"),
    ({"Upload-Checksum": "crc32 AAAA"}, 400, "invalid_checksum"),
    ({"Upload-Checksum": "sha1 AAAA"}, 400, "invalid_checksum"),
    ({"Upload-Checksum": "sha1"}, 400, "invalid_checksum"),
    ({"Upload-Checksum": "sha1 \xff"}, 400, "invalid_checksum"),
]


async def test_a_part_that_does_not_fit_is_refused(doors: Doors, problem: Problem) -> None:
    """In a sentence, with the connection closed before its body is read, and the upload where it was."""
    async with doors.client() as client:
        at = await begun(client, 1_000_000)
        for headers, status, code in UNFIT:
            given = {**PART, "Upload-Offset": "0", **headers}
            raw = [(name.encode(), value.encode("latin-1")) for name, value in given.items()]
            answer = await client.patch(at, headers=raw, content=b"x" * 10)
            problem(answer, status, code)
            assert answer.headers["tus-resumable"] == "1.0.0"
            if status == 412:
                assert answer.headers["tus-version"] == "1.0.0"
            assert await offset_of(client, at) == 0


async def test_more_than_was_announced_is_refused(doors: Doors, problem: Problem) -> None:
    """Declared or in chunks; the upload is not done and can still be."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * 60
        yield b"x" * 60

    async with doors.client() as client:
        at = await begun(client, 100)
        problem(await patched(client, at, 0, b"x" * 101), 413, "too_large")
        assert await offset_of(client, at) == 0
        problem(await patched(client, at, 0, chunks()), 413, "too_large")
        offset = await offset_of(client, at)
        assert offset < 100
        answer = await patched(client, at, offset, b"x" * (100 - offset))
        assert "rubezh-record" in answer.headers


UNBEGUN: list[tuple[dict[str, str], int, str]] = [
    ({}, 400, "invalid_header"),
    ({"Upload-Length": "0"}, 400, "empty_body"),
    ({"Upload-Length": str(LARGEST + 1)}, 413, "too_large"),
    ({"Upload-Length": "1e3"}, 400, "invalid_header"),
    ({"Upload-Length": "9" * 4000}, 400, "invalid_header"),
    ({"Upload-Defer-Length": "1"}, 400, "length_required"),
    ({"Upload-Length": "5", "Tus-Resumable": "2.0.0"}, 412, "unsupported_version"),
    ({"Upload-Length": "5", "Upload-Metadata": "title !!"}, 400, "invalid_metadata"),
    ({"Upload-Length": "5", "Upload-Metadata": "title /w=="}, 400, "invalid_metadata"),
    ({"Upload-Length": "5", "Upload-Metadata": "title YQ==,title YQ=="}, 400, "invalid_metadata"),
    ({"Upload-Length": "5", "Upload-Metadata": "title AA=="}, 422, "invalid_options"),
    ({"Upload-Length": "5", "Upload-Metadata": "track LTE="}, 422, "invalid_options"),
]


async def test_what_cannot_begin_is_refused(doors: Doors, problem: Problem) -> None:
    """At once and in a sentence; nothing is begun."""
    async with doors.client() as client:
        for headers, status, code in UNBEGUN:
            problem(await client.post("/v1/uploads", headers={**TUS, **headers}), status, code)
    assert await put(doors.database, "SELECT 1 FROM uploads") == []
    assert await doors.left() == (0, [])


async def test_what_is_spoken_here_is_told(doors: Doors) -> None:
    """The version, its extensions and the largest size."""
    async with doors.client() as client:
        answer = await client.options("/v1/uploads")
    assert answer.status_code == 204
    told = {name: answer.headers[name] for name in ("tus-version", "tus-extension", "tus-max-size")}
    assert told == {
        "tus-version": "1.0.0",
        "tus-extension": "creation,creation-with-upload,checksum,termination,expiration",
        "tus-max-size": str(LARGEST),
    }
    assert set(answer.headers["tus-checksum-algorithm"].split(",")) == {"sha1", "sha256", "md5"}


@pytest.mark.parametrize("override", [False, True])
async def test_an_upload_may_be_given_up(doors: Doors, problem: Problem, *, override: bool) -> None:
    """Its bytes go; one that has become a record stays, and says so."""
    async with doors.client() as client:
        at = await begun(client, 10)
        await patched(client, at, 0, b"12345")

        async def give_up() -> httpx.Response:
            if override:
                return await client.post(at, headers={**TUS, "X-HTTP-Method-Override": "DELETE"})
            return await client.delete(at, headers=TUS)

        assert (await give_up()).status_code == 204
        assert await doors.left() == (0, [])
        assert (await client.head(at, headers=TUS)).status_code == 404
        problem(await give_up(), 404, "not_found")
        at = await begun(client, 3)
        await patched(client, at, 0, b"abc")
        problem(await give_up(), 409, "finished")
        problem(await client.post(at, headers=TUS), 405, "method_not_allowed")
    assert (await doors.left())[0] == 1


async def test_s_i4_somebody_else_s_upload_is_an_unknown_upload(doors: Doors, problem: Problem) -> None:
    """Whatever is asked, the answer is that of an id that never was; nothing happens to it."""
    _, boris = await an_account(doors.database, "boris")
    async with doors.client() as client, doors.client(boris) as other:
        at = await begun(client, 10)
        for method in ("HEAD", "PATCH", "DELETE"):
            answers = [
                await other.request(method, place, headers={**PART, "Upload-Offset": "0"}, content=b"x")
                for place in (at, f"/v1/uploads/{new_id()}", "/v1/uploads/x", "/v1/uploads/%00")
            ]
            assert {answer.status_code for answer in answers} == {404}
            assert len({answer.content for answer in answers}) == 1
        assert await offset_of(client, at) == 0


async def test_somebody_else_cannot_interrupt_an_upload(doors: Doors) -> None:
    """Whoever knows where it is but does not own it disturbs nobody."""
    _, boris = await an_account(doors.database, "boris")
    async with doors.client() as client, doors.client(boris) as other:
        at = await begun(client, 10)
        head = doors.head("Content-Length: 10", "Upload-Offset: 0", *lines(PART), path=at, method="PATCH")
        async with await trio.open_unix_socket(str(doors.socket)) as stream:
            await stream.send_all(head + b"12345")
            await until(lambda: list((doors.store.root / "uploads").iterdir()) != [])
            for method in ("HEAD", "PATCH", "DELETE"):
                headers = {**PART, "Upload-Offset": "0"}
                answer = await other.request(method, at, headers=headers, content=b"x")
                assert answer.status_code == 404
            await stream.send_all(b"67890")
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 204 ")


async def test_unfinished_uploads_of_an_account_are_limited(doors: Doors, problem: Problem) -> None:
    """One more is told to come again, also when several begin at once."""
    settings = evolve(doors.app.state.doors.settings, account_unfinished=3)
    doors.app.state.doors = evolve(doors.app.state.doors, settings=settings)
    got = []

    async def begin() -> None:
        async with doors.client() as client:
            got.append(await client.post("/v1/uploads", headers={**TUS, "Upload-Length": "3"}))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(begin)
    refused = [answer for answer in got if answer.status_code != 201]
    assert len(refused) == 5
    for answer in refused:
        problem(answer, 429, "too_many_unfinished")
        assert int(answer.headers["retry-after"]) > 0
    begun_at = next(answer.headers["location"] for answer in got if answer.status_code == 201)
    async with doors.client() as client:
        await patched(client, begun_at, 0, b"abc")
        await begun(client, 3)


async def test_a_stopping_service_tells_how_far_an_upload_is_and_takes_no_more(
    doors: Doors, problem: Problem
) -> None:
    """503 with a time to come again for what begins and what goes on."""
    async with doors.client() as client:
        at = await begun(client, 10)
        doors.stopping = True
        assert await offset_of(client, at) == 0
        for answer in (
            await client.post("/v1/uploads", headers={**TUS, "Upload-Length": "3"}),
            await patched(client, at, 0, b"12345"),
        ):
            problem(answer, 503, "stopping")
            assert int(answer.headers["retry-after"]) > 0


async def test_a_full_disk_keeps_what_was_counted(doors: Doors, problem: Problem) -> None:
    """507; with room again the upload goes on."""
    content = os.urandom(900_000)
    async with doors.client() as client:
        at = await begun(client, len(content))
        await patched(client, at, 0, content[:1000])
        object.__setattr__(doors.store, "reserve", 2**60)
        problem(await patched(client, at, 1000, content[1000:]), 507, "no_space")
        problem(await client.post("/v1/uploads", headers={**TUS, "Upload-Length": "9"}), 507, "no_space")
        object.__setattr__(doors.store, "reserve", 0)
        offset = await offset_of(client, at)
        last = await patched(client, at, offset, content[offset:])
    assert doors.store.source(UUID(last.headers["rubezh-record"])).read_bytes() == content


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("word", [b"SET holder", b"SET received", b"finished_at = coalesce", b"COMMIT"])
async def test_s_i5_an_unknown_outcome_neither_loses_nor_doubles_an_upload(
    doors: Doors, dsn: str, monkeypatch: pytest.MonkeyPatch, word: bytes, *, carried_out: bool
) -> None:
    """Cut at any of its writes, an upload is gone on with where it is, and becomes one record."""
    monkeypatch.setattr("storage.submissions.ACCEPT_SECONDS", 0.1)
    content = os.urandom(1000)
    async with (
        open_wire(dsn) as wire,
        open_database(wire.dsn, pool_size=2, call_seconds=5, statement_seconds=5, listen=True) as far,
        doors.client() as client,
    ):
        at = await begun(client, len(content))
        doors.app.state.doors = evolve(doors.app.state.doors, database=far)
        (wire.cut_after if carried_out else wire.cut_before)(word)
        answers = []

        async def done() -> bool:
            offset = await offset_of(client, at)
            answers.append(await patched(client, at, offset, content[offset : offset + 600]))
            return "rubezh-record" in answers[-1].headers

        await until(done)
        assert wire.cuts == []
    assert {answer.status_code for answer in answers} == {204, 503}
    record = answers[-1].headers["rubezh-record"]
    assert doors.store.source(UUID(record)).read_bytes() == content
    assert (await doors.left())[0] == 1
    assert await put(doors.database, "SELECT kind FROM events") == [("accepted",)]


async def test_counted_bytes_that_are_gone_are_told(doors: Doors, problem: Problem) -> None:
    """Nobody waits for ever for an upload whose bytes somebody took away."""
    async with doors.client() as client:
        at = await begun(client, 10)
        await patched(client, at, 0, b"12345")
        (doors.store.root / "uploads" / at.rsplit("/", 1)[1]).unlink()
        problem(await patched(client, at, 5, b"67890"), 410, "upload_gone")
        assert (await client.head(at, headers=TUS)).status_code == 404
    assert await doors.left() == (0, [])


async def test_an_upload_given_up_under_a_request_is_no_record(doors: Doors, problem: Problem) -> None:
    """Who went on with it is told, and nothing is left."""
    async with doors.client() as client, await trio.open_unix_socket(str(doors.socket)) as stream:
        at = await begun(client, 10)
        head = doors.head("Content-Length: 10", "Upload-Offset: 0", *lines(PART), path=at, method="PATCH")
        await stream.send_all(head + b"12345")
        await until(lambda: len(list((doors.store.root / "uploads").iterdir())) == 1)
        assert await drop_upload(doors.database, UUID(at.rsplit("/", 1)[1]), doors.anna.id)
        await stream.send_all(b"67890")
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 409 ")
    assert (await doors.left())[0] == 0


async def test_a_record_keeps_its_bytes_when_its_upload_is_forgotten_under_a_request(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing upload is no licence to remove what may be a record's."""
    forgotten = hold_upload

    async def forget_first(*asked: Any) -> Upload | None:
        await put(doors.database, "DELETE FROM uploads")
        return await forgotten(*asked)

    async with doors.client() as client:
        at = await begun(client, 3)
        record = (await patched(client, at, 0, b"abc")).headers["rubezh-record"]
        monkeypatch.setattr("daemon.intake.tus_parts.hold_upload", forget_first)
        assert (await patched(client, at, 3, b"")).status_code == 409
        assert (await client.get(f"/v1/records/{record}")).status_code == 200
    assert await doors.left() == (1, [f"records/{record}/source"])


@pytest.mark.parametrize("kind", ["plain", "key", "upload"])
async def test_an_account_removed_under_a_request_is_told_and_leaves_nothing(
    doors: Doors, problem: Problem, kind: str
) -> None:
    """Whoever sends for it is told that it may be gone; no record, no bytes."""
    boris, secret = await an_account(doors.database, "boris")
    answers = []
    going = trio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"ab"
        await going.wait()
        yield b"c"

    async def send() -> None:
        async with doors.client(secret) as client:
            if kind == "upload":
                at = await begun(client, 3)
                answers.append(await patched(client, at, 0, slow()))
                return
            headers = {"Idempotency-Key": "k"} if kind == "key" else {}
            answers.append(await client.post("/v1/records", headers=headers, content=slow()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        folder = doors.store.root / ("uploads" if kind == "upload" else "incoming")
        await until(lambda: list(folder.iterdir()) != [])
        await remove_account(doors.database, boris)
        going.set()
    if kind == "upload":
        problem(answers[0], 409, "taken_over")
        await tidy(doors.database, doors.store)
    else:
        problem(answers[0], 422, "refused")
    assert await doors.left() == (0, [])


async def test_an_upload_whose_beginning_fails_is_not_begun(doors: Doors, problem: Problem) -> None:
    """Its sender does not know where it is: with a wrong checksum, or gone, nothing of it is kept."""
    async with doors.client() as client:
        headers = {**PART, "Upload-Length": "6", "Upload-Checksum": f"sha1 {b64encode(bytes(20)).decode()}"}
        problem(await client.post("/v1/uploads", headers=headers, content=b"abc"), 460, "checksum_mismatch")
    assert await doors.left() == (0, [])
    head = doors.head("Content-Length: 6", "Upload-Length: 6", *lines(PART), path="/v1/uploads")
    async with await trio.open_unix_socket(str(doors.socket)) as stream:
        await stream.send_all(head + b"abc")
        await until(lambda: list((doors.store.root / "uploads").iterdir()) != [])

    async def forgotten() -> bool:
        return await put(doors.database, "SELECT 1 FROM uploads") == []

    await until(forgotten)
    await doors.comes_to(0, [])


async def test_an_upload_that_another_process_writes_is_locked(doors: Doors, problem: Problem) -> None:
    """423 and a time to come again; how far it is is told all the same."""
    async with doors.client() as client:
        at = await begun(client, 10)
        async with resumed(doors.store, UUID(at.rsplit("/", 1)[1])):
            answer = await patched(client, at, 0, b"12345")
            problem(answer, 423, "locked")
            assert int(answer.headers["retry-after"]) > 0
            assert await offset_of(client, at) == 0
        assert (await patched(client, at, 0, b"12345")).status_code == 204


async def test_who_cannot_let_go_of_an_upload_is_not_waited_for_long(autojump_clock: MockClock) -> None:
    """Whoever comes then is told that it is locked."""
    turns, upload_id = Turns(), new_id()
    async with turns.mine(upload_id):
        with pytest.raises(refusals.Problem) as locked:
            await turns.interrupt(upload_id)
        assert (locked.value.status, locked.value.code) == (423, "locked")
        assert trio.current_time() == pytest.approx(PATIENCE_SECONDS)
    assert await turns.interrupt(upload_id) is False


async def test_an_upload_of_another_store_is_gone_on_with_there(doors: Doors, problem: Problem) -> None:
    """503: behind one address there may be several daemons, each with a store of its own."""
    elsewhere = await put_store(doors.database)
    async with doors.client() as client:
        at = await begun(client, 10)
        await put(doors.database, "UPDATE uploads SET store_id = %s", elsewhere)
        for answer in (await patched(client, at, 0, b"x"), await client.delete(at, headers=TUS)):
            problem(answer, 503, "elsewhere")
    assert await doors.left() == (0, [])

"""`POST /v1/records`."""

import hashlib
import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from uuid import UUID

import httpx
import psycopg
import pytest
import trio
from attrs import evolve

from daemon.early_answer import LINGER_SECONDS
from storage.accounts import disable_account, issue_token, revoke_token
from tests.daemon.intake.conftest import LARGEST, Doors
from tests.making import an_account, put
from tests.waiting import until

Problem = Callable[[httpx.Response, int, str], str]


async def test_an_accepted_recording_is_there(doors: Doors) -> None:
    """201 with its address and its state; the bytes and their hash are the ones that were sent."""
    content = os.urandom(700_000)
    options = {
        "filename": "meeting.m4a",
        "title": "Plan",
        "topics": ["a", "b"],
        "language": "RU",
        "track": "1",
    }
    async with doors.client() as client:
        answer = await client.post("/v1/records", content=content, params=options)
    assert answer.status_code == 201, answer.text
    shown = answer.json()
    assert answer.headers["location"] == f"/v1/records/{shown['id']}"
    assert (shown["milestone"], shown["filename"], shown["title"]) == ("created", "meeting.m4a", "Plan")
    assert (shown["topics"], shown["language"], shown["progress"]["queue_position"]) == (["a", "b"], "ru", 1)
    (row,) = await put(
        doors.database, "SELECT owner_id, source_path, source_bytes, source_sha256, track, lane FROM records"
    )
    path = f"records/{shown['id']}/source"
    assert row == (doors.anna.id, path, len(content), hashlib.sha256(content).digest(), 1, "convert")
    assert doors.store.path(path).read_bytes() == content
    assert await doors.left() == (1, [path])


async def test_s_i1_accepted_means_on_disk_and_committed(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the 201 is sent, the bytes had been flushed and the row committed: in this order."""
    done: list[str] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        fsync(fd)
        done.append("flushed")

    monkeypatch.setattr(os, "fsync", noted)
    submit = doors.app.routes[0].app  # type: ignore[attr-defined]  # the first route is ours

    async def watched(scope: object, receive: object, send: Callable[[dict[str, object]], object]) -> None:
        async def noting(message: dict[str, object]) -> None:
            rows = await put(doors.database, "SELECT count(*) FROM records")
            done.append(f"{message.get('status', 'body')} with {rows[0][0]} committed")
            await send(message)  # type: ignore[misc]  # the server would call it so

        await submit(scope, receive, noting)

    monkeypatch.setattr(doors.app.routes[0], "app", watched)
    async with doors.client() as client:
        await client.post("/v1/records", content=b"x")
    assert done == ["flushed", "flushed", "flushed", "201 with 1 committed", "body with 1 committed"]


async def chunked(size: int, *, at_once: int = 50_000) -> AsyncIterator[bytes]:
    """Send a body without saying how long it is."""
    for start in range(0, size, at_once):
        yield b"x" * min(at_once, size - start)


async def test_a_chunked_body_is_taken_up_to_the_limit(doors: Doors) -> None:
    """Exactly the largest size is accepted."""
    async with doors.client() as client:
        answer = await client.post("/v1/records", content=chunked(LARGEST))
    assert answer.status_code == 201
    assert await put(doors.database, "SELECT source_bytes FROM records") == [(LARGEST,)]


async def test_s_i3_empty_and_oversized_bodies_are_refused(doors: Doors, problem: Problem) -> None:
    """Empty, declared too large, grown too large: each told at once, and nothing of it is left."""
    async with doors.client() as client:
        problem(await client.post("/v1/records"), 400, "empty_body")
        problem(await client.post("/v1/records", content=chunked(0)), 400, "empty_body")
        for content in (b"x" * (LARGEST + 1), chunked(LARGEST + 1), chunked(20 * LARGEST)):
            detail = problem(await client.post("/v1/records", content=content), 413, "too_large")
            assert str(LARGEST) in detail
    assert await doors.left() == (0, [])


@pytest.mark.parametrize("size", ["Content-Length: 99999999", "Transfer-Encoding: chunked"])
async def test_a_refusal_does_not_wait_for_the_body(doors: Doors, size: str) -> None:
    """The answer to a body that is too large comes while it is being sent, and the connection is closed."""
    part_of_body = b"x" * 0x100000 if "Length" in size else b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    answer = b""
    with trio.fail_after(15):
        async with await trio.open_unix_socket(str(doors.socket)) as stream, trio.open_nursery() as nursery:

            async def send() -> None:
                await stream.send_all(doors.head(size))
                try:
                    for _ in range(100):
                        await stream.send_all(part_of_body)
                except trio.BrokenResourceError:
                    return

            nursery.start_soon(send)
            began = trio.current_time()
            try:
                async for part in stream:
                    answer += part
                    assert trio.current_time() - began < LINGER_SECONDS
            except trio.BrokenResourceError:
                assert answer  # who never stops sending is cut off, after the answer
            nursery.cancel_scope.cancel()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()
    await doors.comes_to(0, [])


@pytest.mark.parametrize("size", ["Content-Length: 900000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("sent", [0, 10, 600_000])
async def test_s_i2_a_client_that_goes_away_leaves_nothing(doors: Doors, size: str, sent: int) -> None:
    """A connection that breaks in the middle of the body leaves neither a row nor a file."""
    async with await trio.open_unix_socket(str(doors.socket)) as stream:
        body = b"x" * sent
        framed = body if "Length" in size else b"%x\r\n%s\r\n" % (sent, body) if sent else b""
        await stream.send_all(doors.head(size) + framed)
        await until(lambda: doors.incoming() == 1)
    await doors.comes_to(0, [])


async def test_a_sender_that_crawls_or_has_vanished_is_not_waited_for(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """408 after the patience for one that sends next to nothing, and nothing of it is left."""
    monkeypatch.setattr("daemon.intake.body.PATIENCE_SECONDS", 0.3)
    for size in ("Content-Length: 900000", "Transfer-Encoding: chunked"):
        answer = await doors.speak(doors.head(size), then=b"" if "chunked" in size else b"x" * 5000)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer.lower()
    await doors.comes_to(0, [])


async def test_a_socket_cut_after_the_last_byte_may_leave_a_whole_record(doors: Doors) -> None:
    """Who leaves after the last byte and before the answer may have been accepted: whole, never in part."""
    async with await trio.open_unix_socket(str(doors.socket)) as stream:
        await stream.send_all(doors.head("Content-Length: 3") + b"abc")
    await until(lambda: doors.incoming() == 0)
    rows, files = await doors.left()
    assert rows == len(files)
    assert not [path for path in files if path.startswith("incoming")]


async def test_every_wrong_option_is_named_at_once(doors: Doors, problem: Problem) -> None:
    """One answer names them all, and the body was not needed for it."""
    options = {"channels": "left", "track": "-1", "language": "Klingon!", "colour": "red", "title": "x" * 501}
    async with doors.client() as client:
        detail = problem(
            await client.post("/v1/records", params=options, content=b"x"), 422, "invalid_options"
        )
    for word in (
        "channels must be",
        "track must be",
        "language must be",
        "'colour' is no option",
        "501 letters",
    ):
        assert word in detail
    assert await doors.left() == (0, [])


@pytest.mark.parametrize("name", ["filename", "title", "description", "topics", "hotwords"])
async def test_nul_is_refused_in_a_sentence(doors: Doors, problem: Problem, name: str) -> None:
    """PostgreSQL keeps no NUL in a text, so nobody gets to hand one in."""
    async with doors.client() as client:
        answer = await client.post("/v1/records", params={name: "a\x00b"}, content=b"x")
        assert "NUL" in problem(answer, 422, "invalid_options")
        form = {name: "a\x00b"}
        answer = await client.post("/v1/records", data=form, files={"file": ("a.wav", b"x")})
        assert "NUL" in problem(answer, 422, "invalid_options")
    assert await doors.left() == (0, [])


HOSTILE = [
    "../../../etc/passwd",
    "/etc/passwd",
    "C:\\windows\\system32",
    "-i.mp3",
    ";$(id)`id`.mp3",
    "a\nb\r\nSet-Cookie: x",
    "'; DROP TABLE records; --",
    "<script>alert(1)</script>",
    "\N{RIGHT-TO-LEFT OVERRIDE}3pm.exe",
    "\N{PILE OF POO}" * 255,
    ".",
    "..",
    "%s %(id)s",
]


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_is_only_text(doors: Doors, name: str) -> None:
    """Whatever a file is called, its bytes lie where we say, and its name comes back as it was."""
    async with doors.client() as client:
        answer = await client.post("/v1/records", params={"filename": name, "title": name}, content=b"x")
        shown = (await client.get(answer.headers["location"])).json()
    assert (shown["filename"], shown["title"]) == (name, name)
    assert await doors.left() == (1, [f"records/{shown['id']}/source"])


async def test_a_form_is_taken_like_a_plain_body(doors: Doors) -> None:
    """What every tool can send: one part `file`, the options as fields, in any order."""
    content = os.urandom(300_000)
    async with doors.client() as client:
        answer = await client.post(
            "/v1/records",
            data={"title": "Plan", "topics": ["a", "b"], "language": "de"},
            files={"file": ("mötley.wav", content, "audio/wav")},
        )
    assert answer.status_code == 201, answer.text
    shown = answer.json()
    assert (shown["filename"], shown["title"], shown["topics"]) == ("mötley.wav", "Plan", ["a", "b"])
    assert doors.store.source(UUID(shown["id"])).read_bytes() == content


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed_form"),
        (b"--b\r\n", 400, "malformed_form"),
        (b"no form at all", 400, "malformed_form"),
        (b'--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nx\r\n--b--\r\n', 400, "malformed_form"),
        (b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n\r\n--b--\r\n', 400, "empty_body"),
        (b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nabc', 400, "malformed_form"),
        (
            2 * b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\na\r\n' + b"--b--",
            400,
            "malformed_form",
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n'
            + b"x" * (LARGEST + 1)
            + b"\r\n--b--\r\n",
            413,
            "too_large",
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="title"\r\n\r\n'
            + b"x" * 200_000
            + b"\r\n--b--\r\n",
            400,
            "malformed_form",
        ),
        (
            101 * b'--b\r\nContent-Disposition: form-data; name="topics"\r\n\r\nx\r\n' + b"--b--\r\n",
            400,
            "malformed_form",
        ),
    ],
)
async def test_a_broken_form_is_refused(
    doors: Doors, problem: Problem, body: bytes, status: int, code: str
) -> None:
    """A form that is cut, has no file, two files, or too much of anything leaves nothing."""
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    async with doors.client() as client:
        problem(await client.post("/v1/records", content=chunked_bytes(body), headers=headers), status, code)
    assert await doors.left() == (0, [])


async def chunked_bytes(body: bytes) -> AsyncIterator[bytes]:
    """Send these bytes without saying how many they are."""
    if body:
        yield body


async def test_many_at_once_each_become_a_record(doors: Doors, problem: Problem) -> None:
    """The same bytes at once are records of their own; past the places for uploads one is told to wait.

    An account has its share of the places, and leaves the rest to the others.
    """
    got: list[httpx.Response] = []
    going = trio.Event()
    _, other = await an_account(doors.database, "boris")

    async def slow() -> AsyncIterator[bytes]:
        yield b"x" * 1000
        await going.wait()
        yield b"y"

    async def hand_in(secret: str) -> None:
        async with doors.client(secret) as client:
            got.append(await client.post("/v1/records", content=slow()))

    async with doors.client() as client, doors.client(other) as others, trio.open_nursery() as nursery:
        for share, secret, code in ((20, doors.secret, "too_many_uploads"), (4, other, "busy")):
            expected = doors.incoming() + share
            for _ in range(share):
                nursery.start_soon(hand_in, secret)
            await until(partial(doors.receives, expected))
            answer = await client.post("/v1/records", content=b"x")
            problem(answer, 429, "too_many_uploads")
            assert int(answer.headers["retry-after"]) > 0
            if code == "busy":
                answer = await others.post("/v1/records", content=b"x")
                problem(answer, 503, "busy")
                assert int(answer.headers["retry-after"]) > 0
        going.set()
    assert [answer.status_code for answer in got] == [201] * 24
    async with doors.client() as client:
        assert (await client.post("/v1/records", content=b"x")).status_code == 201
    rows, files = await doors.left()
    assert (rows, len(files)) == (25, 25)


async def test_hours_in_the_queue_are_limited(doors: Doors, problem: Problem) -> None:
    """Of known length or by size, an account's waiting audio counts; what is done or stopped does not."""
    settings = evolve(doors.app.state.doors.settings, queued_hours=2.0)
    doors.app.state.doors = evolve(doors.app.state.doors, settings=settings)
    async with doors.client() as client:

        async def sent() -> httpx.Response:
            return await client.post("/v1/records", content=b"x" * 100_000)

        assert (await sent()).status_code == 201
        await put(doors.database, "UPDATE records SET decoded_seconds = 7300, recognised_seconds = 200")
        assert (await sent()).status_code == 201
        await put(
            doors.database, "UPDATE records SET source_bytes = 16000 * 120 WHERE decoded_seconds IS NULL"
        )
        answer = await sent()
        assert "2.0 hours" in problem(answer, 429, "queue_full")
        assert int(answer.headers["retry-after"]) > 0
        unlimited = evolve(doors.app.state.doors, settings=evolve(settings, queued_hours=0.0))
        limited, doors.app.state.doors = doors.app.state.doors, unlimited
        assert (await sent()).status_code == 201
        doors.app.state.doors = limited
        await put(
            doors.database,
            "UPDATE records SET milestone = 'done', lane = NULL WHERE decoded_seconds IS NULL",
        )
        assert (await sent()).status_code == 201
    assert (await doors.left())[0] == 4


async def test_s_i6_a_stopping_service_answers_polls_and_takes_nothing_new(
    doors: Doors, problem: Problem
) -> None:
    """The poll is answered; the submission is told when to come again, and leaves nothing."""
    async with doors.client() as client:
        accepted = await client.post("/v1/records", content=b"x")
        doors.stopping = True
        answer = await client.post("/v1/records", content=b"y" * 100_000)
        problem(answer, 503, "stopping")
        assert int(answer.headers["retry-after"]) > 0
        assert (await client.get(accepted.headers["location"])).status_code == 200
    rows, files = await doors.left()
    assert (rows, len(files)) == (1, 1)


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/records"), ("GET", "/v1/records/x"), ("GET", "/v1/records/x/events")],
)
async def test_without_a_valid_token_nothing_is_told(
    doors: Doors, problem: Problem, method: str, path: str
) -> None:
    """None, a wrong, revoked or expired one, a disabled account's: the same 401, byte for byte."""
    token, revoked = await issue_token(doors.database, doors.anna.id, "old", None)
    await revoke_token(doors.database, token.id)
    answers = []
    for secret in ("", "rbz_wrong", revoked):
        async with doors.client(secret) as client:
            answers.append(await client.request(method, path))
    for scheme in ("Basic YTpi", "Bearer", f"Token {doors.secret}", "\xff"):
        async with doors.client("", headers={"Authorization": scheme.encode("latin-1")}) as client:
            answers.append(await client.request(method, path))
    await disable_account(doors.database, doors.anna.id)
    async with doors.client() as client:
        answers.append(await client.request(method, path))
    for answer in answers:
        problem(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.content == answers[0].content
    assert await doors.left() == (0, [])


async def test_a_full_store_is_told(doors: Doors, problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """507 without a word of our paths, and nothing left."""
    object.__setattr__(doors.store, "reserve", 2**60)
    async with doors.client() as client:
        detail = problem(await client.post("/v1/records", content=b"x" * 500_000), 507, "no_space")
    assert str(doors.store.root) not in detail
    assert await doors.left() == (0, [])


async def test_a_database_away_is_told(doors: Doors, problem: Problem, dsn: str) -> None:
    """503 and a time to come again, for sender and asker alike; the door itself stays open."""
    impatient = evolve(doors.database, call_seconds=1.0)
    doors.app.state.doors = evolve(doors.app.state.doors, database=impatient)
    await _take_away(dsn)
    async with doors.client() as client:
        for answer in (
            await client.post("/v1/records", content=b"x" * 500_000),
            await client.get("/v1/records/x"),
        ):
            problem(answer, 503, "database_unavailable")
            assert int(answer.headers["retry-after"]) > 0
        assert (await client.get("/healthz")).status_code == 200


async def _take_away(dsn: str) -> None:
    """Let the database refuse this test's connections."""
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(psycopg.conninfo.make_conninfo(dsn, dbname="postgres"), autocommit=True) as above:
        above.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        above.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))

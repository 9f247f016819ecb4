"""What strangers learn from the writing routes: nothing, whatever they send."""

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import trio

from storage.accounts import disable_account, issue_token, revoke_token
from storage.ids import new_id
from tests.daemon.intake.conftest import Doors
from tests.making import an_account, put

Problem = Callable[[httpx.Response, int, str], str]
PART = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"}
# Every writing route, with the place of an upload of anna's where there is one in its path.
ROUTES: list[tuple[str, str, dict[str, str]]] = [
    ("POST", "/v1/records", {}),
    ("POST", "/v1/records", {"Idempotency-Key": "k"}),
    ("POST", "/v1/records", {"Content-Type": "multipart/form-data; boundary=b"}),
    ("OPTIONS", "/v1/uploads", {}),
    ("POST", "/v1/uploads", {"Tus-Resumable": "1.0.0", "Upload-Length": "5"}),
    ("POST", "/v1/uploads", {**PART, "Upload-Length": "5"}),
    ("HEAD", "{at}", PART),
    ("PATCH", "{at}", PART),
    ("DELETE", "{at}", PART),
    ("POST", "{at}", {**PART, "X-HTTP-Method-Override": "PATCH"}),
    ("POST", "{at}", {**PART, "X-HTTP-Method-Override": "DELETE"}),
    ("POST", "{at}", {**PART, "X-HTTP-Method-Override": "HEAD"}),
]
OWN = {"date", "request-id", "content-length"}


async def an_upload(doors: Doors) -> str:
    """Begin an upload of anna's; return where it is."""
    async with doors.client() as client:
        headers = {"Tus-Resumable": "1.0.0", "Upload-Length": "5"}
        return (await client.post("/v1/uploads", headers=headers)).headers["location"]


async def strangers(doors: Doors) -> dict[str, str]:
    """Return tokens that open nothing, by what is wrong with them."""
    token, revoked = await issue_token(doors.database, doors.anna.id, "old", None)
    await revoke_token(doors.database, token.id)
    past = datetime.now(UTC) - timedelta(seconds=1)
    _, expired = await issue_token(doors.database, doors.anna.id, "short", past)
    carla, disabled = await an_account(doors.database, "carla")
    await disable_account(doors.database, carla.id)
    return {
        "none": "",
        "wrong": "rbz_" + "w" * 43,
        "revoked": revoked,
        "expired": expired,
        "closed": disabled,
    }


def told(answer: httpx.Response) -> tuple[Any, ...]:
    """Return all that an answer tells, but for what is different in each."""
    headers = {name: value for name, value in answer.headers.items() if name not in OWN}
    return answer.status_code, sorted(headers.items()), answer.content


async def test_without_a_valid_token_every_writing_route_says_the_same(doors: Doors) -> None:
    """None, wrong, revoked, expired, of a closed account: one 401, also for what is not there."""
    at = await an_upload(doors)
    secrets = await strangers(doors)
    for method, path, headers in ROUTES:
        places = [at, f"/v1/uploads/{new_id()}", "/v1/uploads/x"] if "{at}" in path else [path]
        answers = []
        for secret in secrets.values():
            async with doors.client(secret) as client:
                answers += [
                    await client.request(method, place, headers=headers, content=b"abcde") for place in places
                ]
        assert answers[0].status_code == 401
        assert answers[0].headers["www-authenticate"].startswith("Bearer")
        for answer in answers:
            assert told(answer) == told(answers[0]), (method, path)
    assert await doors.left() == (0, [])
    assert await put(doors.database, "SELECT received FROM uploads") == [(0,)]


async def test_another_account_learns_nothing_of_an_upload(doors: Doors) -> None:
    """What is there and what never was are one 404, and nothing is done to it."""
    _, boris = await an_account(doors.database, "boris")
    at = await an_upload(doors)
    for method, _, headers in (route for route in ROUTES if "{at}" in route[1]):
        async with doors.client(boris) as client:
            answers = [
                await client.request(method, place, headers=headers, content=b"abcde")
                for place in (at, f"/v1/uploads/{new_id()}")
            ]
        assert answers[0].status_code == 404
        assert told(answers[0]) == told(answers[1]), method
    assert await put(doors.database, "SELECT received FROM uploads") == [(0,)]


HEADS = {
    "huge header": (b"X-Long: " + b"x" * 100_000 + b"\r\nContent-Length: 1", b"x"),
    "many headers": (b"\r\n".join(b"X-%d: x" % n for n in range(5000)) + b"\r\nContent-Length: 1", b"x"),
    "NUL in a header": (b"X-Nul: a\x00b\r\nContent-Length: 1", b"x"),
    "bare line feed": (b"X-Lf: a\nContent-Length: 1\r\nContent-Length: 1", b"x"),
    "folded header": (b"X-Folded: a\r\n b\r\nContent-Length: 1", b"x"),
    "two lengths": (b"Content-Length: 1\r\nContent-Length: 2", b"x"),
    "negative length": (b"Content-Length: -1", b"x"),
    "length of many digits": (b"Content-Length: " + b"9" * 4000, b"x"),
    "length that is none": (b"Content-Length: 1e3", b"x"),
    "unknown coding": (b"Transfer-Encoding: gzip, chunked", b"1\r\nx\r\n0\r\n\r\n"),
    "chunk of many digits": (b"Transfer-Encoding: chunked", b"f" * 4000 + b"\r\nx"),
    "chunk that is none": (b"Transfer-Encoding: chunked", b"-1\r\nx\r\n0\r\n\r\n"),
    "key that is no text": (b'Idempotency-Key: "\xff"\r\nContent-Length: 1', b"x"),
    "content type that is none": (
        b"Content-Type: multipart/form-data; boundary=\xff\r\nContent-Length: 1",
        b"x",
    ),
    "boundary without end": (
        b"Content-Type: multipart/form-data; boundary=" + b"b" * 5000 + b"\r\nContent-Length: 1",
        b"x",
    ),
}


async def test_a_hostile_head_is_refused_or_taken_and_breaks_nothing(doors: Doors) -> None:
    """An answer that blames the sender or none at all, never ours; the next request is served."""
    for name, (lines, body) in HEADS.items():
        head = doors.head().removesuffix(b"\r\n") + lines + b"\r\nConnection: close\r\n\r\n"
        answer = await answered(doors, head + body)
        fine = (b"HTTP/1.1 4", b"HTTP/1.1 201", b"HTTP/1.1 501")
        assert not answer or answer.startswith(fine), name
        async with doors.client() as client:
            assert (await client.post("/v1/records", content=b"x")).status_code == 201, name
        rows, files = await doors.left()
        assert rows == len(files), name


async def answered(doors: Doors, said: bytes) -> bytes:
    """Say something; return what comes until the end, which may be a broken connection."""
    answer = b""
    with trio.fail_after(20):
        async with await trio.open_unix_socket(str(doors.socket)) as stream:
            try:
                await stream.send_all(said)
                await stream.send_eof()
            except trio.BrokenResourceError:
                return answer
            try:
                async for part in stream:
                    answer += part
            except trio.BrokenResourceError:
                return answer
    return answer


NAMES = [
    "../../../x",
    "C:\\x",
    "-i.mp3",
    ";$(id)",
    "a\x1b[2J",
    "\N{RIGHT-TO-LEFT OVERRIDE}3pm",
    "я" * 255,
    "'\"\\",
]


async def test_a_hostile_name_of_an_upload_is_only_text(doors: Doors) -> None:
    """It comes back as it was, and decides nothing."""
    records = []
    async with doors.client() as client:
        for name in NAMES:
            said = f"filename {b64encode(name.encode()).decode()}"
            headers = {**PART, "Upload-Length": "3", "Upload-Metadata": said}
            done = await client.post("/v1/uploads", headers=headers, content=b"abc")
            records.append(done.headers["rubezh-record"])
            assert (await client.get(f"/v1/records/{records[-1]}")).json()["filename"] == name
    assert await doors.left() == (len(NAMES), sorted(f"records/{each}/source" for each in records))


DISPOSITIONS = [
    b'name="file"; filename="\xff\xfe\x00"',
    b'name="file"; filename="' + b"x" * 2000 + b'"',
    b"name=\"file\"; filename*=UTF-8''%FF%00",
    b'name="file"; filename="a"; filename="b"',
    b'name="file\x00"',
    b"name=\xff",
    b"",
]


async def test_a_hostile_form_is_refused_or_its_name_is_only_text(doors: Doors) -> None:
    """Broken text is told as such; whatever is taken is one whole record."""
    taken = 0
    for disposition in DISPOSITIONS:
        body = b"--b\r\nContent-Disposition: form-data; " + disposition + b"\r\n\r\nabc\r\n--b--\r\n"
        async with doors.client() as client:
            kind = {"Content-Type": "multipart/form-data; boundary=b"}
            answer = await client.post("/v1/records", content=body, headers=kind)
        assert answer.status_code in (201, 400, 422), answer.text
        taken += answer.status_code == 201
        rows, files = await doors.left()
        assert rows == len(files) == taken, disposition

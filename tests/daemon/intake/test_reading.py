"""The readiness poll and the history, as the doors tell them."""

import json
from collections.abc import Callable
from uuid import UUID, uuid4

import httpx
import pytest
import structlog

from storage import entries
from storage.ids import new_id
from storage.owner import lift, stop
from tests.daemon.intake.conftest import Doors
from tests.making import a_record, an_account, change

Problem = Callable[[httpx.Response, int, str], str]
STOPPED = "stop_code = 'silent', stop_reason = '/secret/path', stopped_at = now(), stopped_by = 'host:1'"


async def test_the_poll_has_the_contract_s_shape(doors: Doors) -> None:
    """Every member of the contract, and no other."""
    record_id = await a_record(doors.database, doors.store, doors.anna, asked_language="de")
    await change(
        doors.database,
        record_id,
        "milestone = 'transcribe', lane = 'whisper', declared_seconds = 14400.2, decoded_seconds = 14400, "
        "recognised_seconds = 2535, found_language = 'ru', created_at = '2026-01-02 03:04:05+03', "
        "milestone_since = '2026-01-02 03:04:05.25+00'",
    )
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{record_id}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["retry-after"] == "1"
    assert answer.json() == {
        "id": str(record_id),
        "milestone": "transcribe",
        "stopped": False,
        "stop": None,
        "progress": {
            "audio_seconds": 14400.0,
            "recognised_seconds": 2535.0,
            "fraction": 0.176,
            "queue_position": 1,
        },
        "title": "A talk",
        "description": "",
        "topics": ["one", "two"],
        "filename": "talk.wav",
        "language": "ru",
        "created_at": "2026-01-02T00:04:05Z",
        "milestone_since": "2026-01-02T03:04:05.250000Z",
        "failures": 0,
        "corrections": 0,
        "left_name": "",
        "right_name": "",
        "edition": 1,
        "audio": {"declared_seconds": 14400.2, "decoded_seconds": 14400.0, "warnings": []},
        "text": None,
    }


async def test_a_stop_is_told_without_its_insides(doors: Doors) -> None:
    """The code, a sentence for a person, when and where; the full reason is in the service owner's log."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    await change(doors.database, record_id, f"milestone = 'converted', {STOPPED}")
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{record_id}")
    assert "retry-after" not in answer.headers
    assert "/secret/path" not in answer.text
    shown = answer.json()
    assert shown["stopped"] is True
    assert set(shown["stop"]) == {"code", "message", "at", "milestone"}
    assert (shown["stop"]["code"], shown["stop"]["milestone"]) == ("silent", "converted")
    assert shown["stop"]["message"].startswith("No speech was found")


async def test_s_i4_somebody_else_s_record_is_an_unknown_record(doors: Doors, problem: Problem) -> None:
    """Another's, a deleted, an unknown, an impossible id: the same 404, byte for byte and head for head."""
    _, boris = await an_account(doors.database, "boris")
    theirs = await a_record(doors.database, doors.store, doors.anna)
    deleted = await a_record(doors.database, doors.store, doors.anna)
    await change(doors.database, deleted, "deleted_at = now()")
    ids = [str(theirs), str(deleted), str(new_id()), str(uuid4()), "x", theirs.hex, f"{{{theirs}}}", "%00"]
    async with doors.client(boris) as client:
        for ending in ("", "/events"):
            answers = [await client.get(f"/v1/records/{each}{ending}") for each in ids]
            for answer in answers:
                problem(answer, 404, "not_found")
                assert answer.content == answers[0].content
                assert {*answer.headers} == {*answers[0].headers}
    async with doors.client() as client:
        assert (await client.get(f"/v1/records/{theirs}")).status_code == 200


async def test_the_history_tells_what_happened_and_not_how_we_work(doors: Doors) -> None:
    """What people did is theirs by name; what the service did is the service's."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    await stop(doors.database, record_id, doors.anna.id, "anna")
    await lift(doors.database, record_id, None, "root@host")
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{record_id}/events")
    assert answer.status_code == 200
    events = answer.json()["events"]
    assert [(event["kind"], event["by"], event.get("code")) for event in events] == [
        ("accepted", "anna", None),
        ("stopped", "anna", "stopped_by_owner"),
        ("lifted", "root@host", None),
    ]
    assert all(event["at"].endswith("Z") and event["milestone"] == "created" for event in events)


async def test_the_sign_of_life_needs_no_token(doors: Doors) -> None:
    """And tells nothing else."""
    async with doors.client("") as client:
        answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "not_found"),
        ("PUT", "/v1/records", 405, "method_not_allowed"),
        ("PUT", "/healthz", 405, "method_not_allowed"),
        ("POST", "/v1/nothing", 404, "not_found"),
    ],
)
async def test_what_is_not_there_is_a_problem_too(
    doors: Doors, problem: Problem, method: str, path: str, status: int, code: str
) -> None:
    """Also with a body that nobody reads, after which the next request still finds its answer."""
    async with doors.client() as client:
        for content in (b"", b"x" * 3_000_000):
            problem(await client.request(method, path, content=content), status, code)
        assert (await client.get("/healthz")).status_code == 200


async def test_an_error_of_ours_stays_in_its_request(
    doors: Doors, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logged once, told as a 500 without our insides, and the next request is served."""

    async def failing(*_: object) -> None:
        raise RuntimeError("the insides")

    async with doors.client() as client:
        with monkeypatch.context() as broken, structlog.testing.capture_logs() as logged:
            broken.setattr(entries, "in_read_many", failing)
            answer = await client.get(f"/v1/records/{new_id()}")
        assert "insides" not in problem(answer, 500, "internal_error")
        assert [(entry["event"], entry["log_level"]) for entry in logged] == [("request.failed", "warning")]
        assert (await client.get("/healthz")).status_code == 200


async def test_secrets_and_bodies_are_never_logged(doors: Doors) -> None:
    """Neither of a submission that is accepted nor of one that is refused."""
    with structlog.testing.capture_logs() as logged:
        async with doors.client() as client:
            accepted = await client.post("/v1/records", content=b"the body", params={"title": "the title"})
            await client.post("/v1/records", content=b"the body", params={"title": "\x00"})
        async with doors.client("rbz_wrong") as client:
            await client.post("/v1/records", content=b"the body")
    assert [entry["event"] for entry in logged] == ["submission.accepted"]
    assert logged[0]["record"] == UUID(accepted.json()["id"])
    told = json.dumps(logged, default=str)
    assert not [word for word in (doors.secret, "rbz_", "the body", "the title") if word in told]

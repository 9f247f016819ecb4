"""What the service owner may ask of the process behind the doors, and where."""

from collections.abc import Callable
from functools import partial

import httpx
import pytest
import trio
from attrs import evolve

from daemon.web import serve_web
from storage.accounts import set_role
from storage.claims import Claims
from storage.daemons import LaneSign, Sign
from storage.owner import delete
from tests.builders import claims_of
from tests.daemon.intake.conftest import Doors
from tests.making import LANE, a_record

Problem = Callable[[httpx.Response, int, str], str]
ROUTES = ("/readyz", "/metrics", "/v1/service/records/{id}/explanation")


def living(doors: Doors, closed: str | None = None) -> Claims:
    """Return the claims of a process that gives signs of life."""
    lane = LaneSign(name=LANE, slots=1, busy=0, closed_because=closed)
    sign = Sign(host="host", pid=1, beat_seconds=10.0, workers=3, lanes=(lane,))
    return evolve(claims_of(doors.database, doors.store.id), sign=lambda: sign)


async def test_all_is_ready(doors: Doors) -> None:
    """Without a token, on the socket."""
    async with doors.client("") as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "ready": True,
        "not_ready": [],
        "database": "ok",
        "silent": [],
        "closed_lanes": {},
        "stopping": False,
    }


async def test_s_o13_what_is_not_ready_is_said(doors: Doors) -> None:
    """Each by itself, in a sentence, with 503."""
    doors.silent, doors.stopping = frozenset({"worker 2"}), True
    async with doors.client("") as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["not_ready"] == [
        "worker 2 has not been heard from in its time",
        "the service is stopping",
    ]
    assert answer.json()["silent"] == ["worker 2"]


async def test_a_closed_lane_is_told_with_its_reason_and_is_no_reason_to_turn_senders_away(
    doors: Doors,
) -> None:
    """Recordings are taken all the same, and wait."""
    doors.closed = {"whisper": "the model base is missing"}
    async with doors.client("") as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["closed_lanes"] == {"whisper": "the model base is missing"}


async def test_a_database_that_is_away_is_said_soon(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks does not wait for the deadline of an ordinary call."""
    monkeypatch.setattr("daemon.intake.service.LOOK_SECONDS", 0.0)
    async with doors.client("") as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["not_ready"] == ["the database cannot be reached (no connection within 0 s)"]


async def test_the_numbers_are_in_prometheus_format(doors: Doors) -> None:
    """With their type and their first values."""
    async with doors.client("") as client:
        answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert f'rubezh_lane_closed{{lane="{LANE}"}} 0.0' in answer.text


async def test_a_record_is_explained(doors: Doors, problem: Problem) -> None:
    """Whoever's it is, deleted ones too; an unknown one is not found."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    await living(doors, closed="no room on the disk").wake()
    async with doors.client("") as client:
        answer = await client.get(f"/v1/service/records/{record_id}/explanation")
        assert answer.status_code == 200
        shown = answer.json()
        assert shown["excluded_by"] == ["lane free"]
        assert "closed: no room on the disk" in shown["verdict"]
        assert (shown["milestone"], shown["lane"], shown["queue_position"]) == ("created", LANE, 1)
        assert shown["milestone_limit_seconds"] == 6000.0
        assert shown["daemons"][0]["lanes"] == [
            {"name": LANE, "slots": 1, "busy": 0, "closed_because": "no room on the disk"}
        ]
        await living(doors).wake()
        shown = (await client.get(f"/v1/service/records/{record_id}/explanation")).json()
        assert shown["excluded_by"] == []
        await delete(doors.database, record_id, None, "anna")
        shown = (await client.get(f"/v1/service/records/{record_id}/explanation")).json()
        assert shown["excluded_by"] == ["not deleted"]
        for unknown in (doors.anna.id, "talk"):
            problem(await client.get(f"/v1/service/records/{unknown}/explanation"), 404, "not_found")


@pytest.mark.parametrize("route", ROUTES)
async def test_s_o13_over_tcp_nothing_of_it_is_told(
    doors: Doors, problem: Problem, nursery: trio.Nursery, route: str
) -> None:
    """Not without a token, and not to a sender either: that right is an account's that was given it."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    serving = partial(serve_web, doors.app, socket=doors.socket.with_suffix(".2"), listen="127.0.0.1:0")
    [_, address] = await nursery.start(serving)
    path = f"http://{address}{route.format(id=record_id)}"
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        problem(await client.get(path), 401, "unauthorized")
        answer = await client.get(path, headers={"Authorization": f"Bearer {doors.secret}"})
        problem(answer, 403, "forbidden")
        await set_role(doors.database, doors.anna.id, is_service_owner=True)
        answer = await client.get(path, headers={"Authorization": f"Bearer {doors.secret}"})
        assert answer.status_code == 200
        assert (await client.get(f"http://{address}/healthz")).status_code == 200

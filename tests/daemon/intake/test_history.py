"""A record's history, as a list and live."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from daemon.intake import history
from storage.accounts import list_tokens, revoke_token
from storage.owner import delete, lift, stop
from tests.daemon.intake.conftest import Doors
from tests.making import a_record
from tests.talking import Heard, hearing
from tests.waiting import until

Problem = Callable[[httpx.Response, int, str], str]
STREAM = {"Accept": "text/event-stream"}


class History(Heard):
    """What a stream said so far, as events."""

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events, each as its data with the id that the stream gave it."""
        found = []
        for block in self.said.split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
            if "data" in fields:
                data = json.loads(fields["data"])
                assert (fields["id"], fields["event"]) == (str(data["id"]), data["kind"])
                found.append(data)
        return found

    @property
    def kinds(self) -> list[str]:
        """Their kinds."""
        return [event["kind"] for event in self.events]


@asynccontextmanager
async def listening(doors: Doors, record_id: object, **headers: str) -> AsyncIterator[History]:
    """Listen to a stream during the block."""
    heard = History()
    path = f"/v1/records/{record_id}/events"
    async with doors.client() as client, hearing(client, path, heard, {**STREAM, **headers}):
        yield heard


async def test_a_stream_goes_on_as_things_happen(doors: Doors) -> None:
    """What there was, then each event as it comes; after a break it goes on behind the last one."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    async with listening(doors, record_id) as heard:
        await until(lambda: heard.kinds == ["accepted"])
        await stop(doors.database, record_id, None, "anna")
        await until(lambda: heard.kinds == ["accepted", "stopped"])
        last = heard.events[-1]
        assert (last["code"], last["by"], "message" in last) == ("stopped_by_owner", "anna", True)
    await until(lambda: doors.app.state.doors.polls.changes.waiting == 0)
    await lift(doors.database, record_id, None, "anna")
    async with listening(doors, record_id, **{"Last-Event-ID": str(last["id"])}) as heard:
        await until(lambda: heard.kinds == ["lifted"])
        await delete(doors.database, record_id, None, "anna")
        await until(lambda: heard.over)  # with the record


async def test_a_stream_shows_that_it_is_alive_and_what_nobody_tells_of(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks by itself now and then; nothing is told twice."""
    monkeypatch.setattr(history, "LOOK_SECONDS", 0.1)
    record_id = await a_record(doors.database, doors.store, doors.anna)
    async with listening(doors, record_id) as heard:
        await until(lambda: heard.said.count(": still here") >= 2)
        assert heard.kinds == ["accepted"]
        [token] = await list_tokens(doors.database, doors.anna.id)
        await revoke_token(doors.database, token.id)
        await until(lambda: heard.over)


async def test_a_stream_without_a_place_ends_at_once(doors: Doors) -> None:
    """With what there is; the sender comes again by itself, later."""
    record_id = await a_record(doors.database, doors.store, doors.anna)
    doors.app.state.doors.polls.changes.most = 0
    async with listening(doors, record_id, **{"Last-Event-ID": "nonsense"}) as heard:
        await until(lambda: heard.over)
    assert heard.kinds == ["accepted"]
    assert heard.said.startswith("retry: 2000\n\n")


async def test_a_stream_of_nobody_s_record_is_a_problem(doors: Doors, problem: Problem) -> None:
    """As everywhere."""
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{doors.anna.id}/events", headers=STREAM)
    problem(answer, 404, "not_found")

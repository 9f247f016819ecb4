"""The wired service says that it lives, under the name that its claims carry, and how it is."""

from pathlib import Path
from typing import Any

import httpx

from daemon.parts import Ground
from daemon.service import serve
from daemon.settings import DatabaseSettings, IntakeSettings, Settings, WorkSettings
from stages.stage import Stage
from storage.database import Database
from storage.errors import MeansAway
from storage.folder import StateFolder
from storage.ids import new_id
from storage.record import Milestone
from tests.builders import ask
from tests.daemon.assembly import Told, a_line
from tests.waiting import until


async def test_a_service_gives_signs_of_life_until_its_orderly_end(
    database: Database, dsn: str, tmp_path: Path, reachable: Path
) -> None:
    """With its slots, and a lane that is closed with its reason; nothing is left of it afterwards.

    The doors tell the same of the process behind them.
    """
    door = reachable / f"{new_id().hex[-12:]}.sock"

    async def away() -> None:
        raise MeansAway("the model is missing")

    def line_of(_settings: Settings, _folder: StateFolder) -> tuple[Stage, ...]:
        return (*a_line()[:2], Told(takes=Milestone.TRANSCRIBE, means=away))

    seen: list[dict[str, Any]] = []

    async def visitor(ground: Ground) -> None:
        async def has_signed() -> bool:
            seen[:] = await ask(ground.database, "SELECT * FROM daemons")
            return bool(seen)

        await until(has_signed)
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(door)), timeout=20) as client:
            ready = await client.get("http://rubezh/readyz")
            numbers = await client.get("http://rubezh/metrics")
        seen.append({"store": ground.store.id, "ready": ready.json(), "numbers": numbers.text})

    settings = Settings(
        state=tmp_path / "state",
        database=DatabaseSettings(dsn=dsn),
        work=WorkSettings(workers=2, renew_seconds=0.2, grace_seconds=0.0),
        intake=IntakeSettings(socket=str(door)),
    )
    await serve(settings, visitor=visitor, line_of=line_of)
    sign, told = seen
    assert sign["stores"] == [told["store"]]
    assert sign["workers"] == 2
    assert sign["beat_seconds"] == 0.2
    assert sign["run"].startswith(f"{sign['host']}:{sign['pid']}:")
    assert sorted(sign["milestones"]) == ["converted", "created", "transcribe"]
    assert {lane["name"]: lane["closed_because"] for lane in sign["lanes"]} == {
        "convert": None,
        "whisper": "the model is missing",
    }
    assert told["ready"]["ready"] is True
    assert told["ready"]["closed_lanes"] == {"whisper": "the model is missing"}
    assert 'rubezh_lane_closed{lane="whisper"} 1.0' in told["numbers"]
    assert await ask(database, "SELECT run FROM daemons") == []

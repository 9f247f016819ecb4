"""The wired service says that it lives, by the name that its claims carry, and takes its leave."""

from pathlib import Path
from typing import Any

from daemon.parts import Ground
from daemon.service import serve
from daemon.settings import DatabaseSettings, Settings, WorkSettings
from stages.stage import Stage
from storage.database import Database
from storage.errors import MeansAway
from storage.folder import StateFolder
from storage.record import Milestone
from tests.builders import ask
from tests.daemon.assembly import Told, a_line
from tests.waiting import until


async def test_a_service_gives_signs_of_life_until_its_orderly_end(
    database: Database, dsn: str, tmp_path: Path
) -> None:
    """With its slots, and a lane that is closed with its reason; nothing is left of it afterwards."""

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
        seen.append({"store": ground.store.id})

    settings = Settings(
        state=tmp_path / "state",
        database=DatabaseSettings(dsn=dsn),
        work=WorkSettings(workers=2, renew_seconds=0.2, grace_seconds=0.0),
    )
    await serve(settings, doors=False, visitor=visitor, line_of=line_of)
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
    assert await ask(database, "SELECT run FROM daemons") == []

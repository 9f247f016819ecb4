"""The whole service in this process: its two rings, how it ends, and what a crash in it costs."""

import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
import trio
from attrs import evolve
from structlog.testing import capture_logs
from structlog.typing import EventDict

from daemon.parts import Ground
from daemon.service import serve
from daemon.settings import DatabaseSettings, Settings, WorkSettings
from stages.stage import Stage
from storage.errors import EmbeddedPostgresFailed, MeansAway
from storage.folder import StateFolder
from storage.record import Milestone
from tests.builders import Queue, ask, claims_of, put_account
from tests.daemon.assembly import Told, a_line, fail, hang
from tests.daemon.test_verdict import RAISING
from tests.waiting import until

Visit = Callable[[Ground, Queue], Awaitable[None]]


@pytest.fixture
def settings(dsn: str, tmp_path: Path) -> Settings:
    """A service on a migrated database, quick in everything."""
    return Settings(
        state=tmp_path / "state",
        database=DatabaseSettings(dsn=dsn),
        work=WorkSettings(poll_seconds=0.05, renew_seconds=0.2, grace_seconds=0.0, first_retry_seconds=60.0),
    )


@pytest.fixture
def told() -> Iterator[list[EventDict]]:
    """What is logged."""
    with capture_logs() as entries:
        yield entries


async def run(settings: Settings, visit: Visit, *line: Stage) -> None:
    """Serve for as long as the visit lasts, with the stages of `line` in the place of a line's own."""
    instead = {stage.takes: stage for stage in line}

    def line_of(_settings: Settings, _folder: StateFolder) -> tuple[Stage, ...]:
        return tuple(instead.get(stage.takes, stage) for stage in a_line())

    async def visitor(ground: Ground) -> None:
        queue = Queue(
            database=ground.database,
            owner=await put_account(ground.database),
            store=ground.store.id,
            claims=claims_of(ground.database, ground.store.id),
        )
        await visit(ground, queue)

    with trio.fail_after(30):
        await serve(settings, doors=False, visitor=visitor, line_of=line_of)


async def put_record(ground: Ground, queue: Queue, milestone: Milestone = Milestone.CREATED) -> UUID:
    """Make a record with its folder in the store."""
    record_id = await queue.record(milestone)
    ground.store.record_folder(record_id).mkdir()
    return record_id


def events_of(dsn: str, record_id: UUID) -> list[tuple[str, str | None]]:
    """Return a record's history, after the service has ended."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT kind, detail ->> 'cause' FROM events WHERE record_id = %s ORDER BY id", [record_id]
        )
        return [(row[0], row[1]) for row in rows]


def failures_of(dsn: str, record_id: UUID) -> int:
    """Return a record's count, after the service has ended."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT failures FROM records WHERE id = %s", [record_id]).fetchone()
    assert row is not None
    return int(row[0])


def loud(entries: list[EventDict]) -> list[str]:
    """Return the events at WARNING and above."""
    return [entry["event"] for entry in entries if entry["log_level"] in ("warning", "error", "critical")]


def of_a_kind(entries: list[EventDict], event: str) -> int:
    """Return how often an event was told."""
    return sum(entry["event"] == event for entry in entries)


def of_the_service(entries: list[EventDict]) -> list[str]:
    """Return what was told of the service as a whole."""
    return [entry["event"] for entry in entries if entry["event"].startswith("service.")]


async def test_a_service_works_records_until_its_visitor_leaves(
    settings: Settings, told: list[EventDict]
) -> None:
    """From the first milestone to the last; then it ends by itself, and nobody waits for a grace."""
    settings = evolve(settings, work=evolve(settings.work, grace_seconds=60.0))

    async def visit(ground: Ground, queue: Queue) -> None:
        record = await put_record(ground, queue)

        async def is_done() -> bool:
            return bool((await queue.row(record))["milestone"] == "done")

        await until(is_done)

    await run(settings, visit)
    assert of_the_service(told) == ["service.started", "service.stopping", "service.stopped"]
    assert loud(told) == []


async def test_s_p4_a_crash_elsewhere_spends_the_attempt(
    settings: Settings, dsn: str, told: list[EventDict]
) -> None:
    """A worker crashes: its neighbours' attempts are counted failures, and the crash leaves as a group."""
    records: list[UUID] = []

    async def visit(ground: Ground, queue: Queue) -> None:
        records.extend([await put_record(ground, queue) for _ in range(2)])
        await until(lambda: _read(told, 2))
        await ask(ground.database, "ALTER TABLE records DROP COLUMN hotwords")
        await ask(
            ground.database,
            "INSERT INTO records SELECT (jsonb_populate_record(r, %s::jsonb)).* FROM records AS r LIMIT 1",
            [_another_row()],
        )
        await trio.sleep_forever()

    settings = evolve(settings, convert=evolve(settings.convert, slots=3))
    with pytest.RaisesGroup(psycopg.errors.UndefinedColumn, flatten_subgroups=True):
        await run(settings, visit, Told(takes=Milestone.CREATED, play=hang))
    for record in records:
        assert failures_of(dsn, record) == 1
        kind, cause = events_of(dsn, record)[-1]
        assert kind == "failed"
        assert str(cause).startswith("the stage came to no outcome; what ended it: Cancelled")
    assert "service.stopping" not in of_the_service(told), "nobody asked for a stop"
    assert list((settings.state / "owed").iterdir()) == [], "nothing is given back"


async def test_the_death_of_our_postgresql_ends_the_service_soon(
    reachable: Path, told: list[EventDict]
) -> None:
    """An attempt that cannot be settled any more keeps nobody, however patient a settle may be."""
    settings = Settings(
        state=reachable / "dying",
        work=WorkSettings(poll_seconds=0.05, exit_seconds=1.0, settle_seconds=900.0),
    )

    async def visit(ground: Ground, queue: Queue) -> None:
        await put_record(ground, queue)
        await until(lambda: _read(told, 1))
        words = (ground.folder.postgres / "data" / "postmaster.pid").read_text("ascii")
        os.kill(int(words.split()[0]), signal.SIGKILL)
        await trio.sleep_forever()

    with pytest.RaisesGroup(EmbeddedPostgresFailed, flatten_subgroups=True):
        await run(settings, visit, Told(takes=Milestone.CREATED, play=hang))
    [given_up] = [entry for entry in told if entry["event"] == "settle.given_up"]
    assert given_up["after_seconds"] < settings.work.exit_seconds + settings.database.call_seconds
    assert list((settings.state / "owed").iterdir()) == [], "a crash gives nothing back"


async def _claimed(queue: Queue, count: int) -> bool:
    [row] = await ask(queue.database, "SELECT count(*) AS held FROM records WHERE claim_token IS NOT NULL")
    return bool(row["held"] == count)


async def _read(told: list[EventDict], count: int) -> bool:
    return of_a_kind(told, "record.claimed") == count


def _another_row() -> str:
    return (
        '{"id": "00000000-0000-7000-8000-000000000001", "claim_token": null, "claimed_by": null,'
        ' "claimed_at": null, "lease_seconds": null, "lease_until": null, "wake_at": null, "failures": 0}'
    )


async def test_s_p4_a_crash_of_the_support_ring_spends_it_too(
    settings: Settings, dsn: str, told: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe crashes with a fault of ours; who waits in this process is cancelled, which is no stop."""
    monkeypatch.setattr("daemon.lanes.FIRST_PROBE_SECONDS", 0.1)
    looks, records = iter([True]), list[UUID]()

    async def stumble() -> None:
        if not next(looks, False):
            raise RuntimeError("a fault of ours")

    async def visit(ground: Ground, queue: Queue) -> None:
        records.append(await put_record(ground, queue))
        await until(lambda: _claimed(queue, 1))
        for _ in range(2):
            await put_record(ground, queue, Milestone.CONVERTED)
        await trio.sleep_forever()

    away = Told(takes=Milestone.CONVERTED, play=fail(MeansAway("no model")), means=stumble)
    with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True):
        await run(settings, visit, Told(takes=Milestone.CREATED, play=hang), away)
    assert failures_of(dsn, records[0]) == 1
    assert events_of(dsn, records[0])[-1][0] == "failed"


async def test_s_p4_a_stage_that_takes_the_process_down_is_counted(settings: Settings, dsn: str) -> None:
    """SystemExit is no error of a stage: it is settled as a failure, and goes on to end the process."""
    records: list[UUID] = []

    async def visit(ground: Ground, queue: Queue) -> None:
        records.append(await put_record(ground, queue))
        await trio.sleep_forever()

    with capture_logs(), pytest.RaisesGroup(SystemExit, flatten_subgroups=True):
        await run(settings, visit, Told(takes=Milestone.CREATED, play=fail(SystemExit(3))))
    assert failures_of(dsn, records[0]) == 1
    expected = ("failed", "the stage came to no outcome; what ended it: SystemExit: 3")
    assert events_of(dsn, records[0])[-1] == expected


async def test_no_exception_of_a_stage_ends_the_service(settings: Settings, told: list[EventDict]) -> None:
    """Whatever kind of error, alone or in a group: a failure of its record, and the next one is worked."""

    class OddError(Exception):
        """Says nothing that can be shown."""

        def __str__(self) -> str:
            return "\0\ud800"

    errors = iter(
        [ValueError("bad"), OddError(), ExceptionGroup("many", [OSError(), OddError()]), StopIteration()]
    )

    async def visit(ground: Ground, queue: Queue) -> None:
        records = [await put_record(ground, queue) for _ in range(4)]

        async def are_failed() -> bool:
            rows = [await queue.row(record) for record in records]
            return all(row["failures"] == 1 and row["claim_token"] is None for row in rows)

        await until(are_failed)

    class Raising:
        """Raises the next error."""

        async def __call__(self, record: object, tools: object) -> None:
            del record, tools
            raise next(errors)

    await run(settings, visit, Told(takes=Milestone.CREATED, play=Raising()))  # type: ignore[arg-type]  # a wrong one on purpose
    assert loud(told) == ["record.failed"] * 4


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGTERM, signal.SIGINT]])
async def test_a_signal_gives_back_what_runs(
    settings: Settings, dsn: str, told: list[EventDict], signals: list[signal.Signals]
) -> None:
    """At the end of the grace, or at once with the second one: uncounted, ready, no failure told."""
    settings = evolve(settings, work=evolve(settings.work, grace_seconds=60.0 if len(signals) > 1 else 0.2))
    records: list[UUID] = []

    async def visit(ground: Ground, queue: Queue) -> None:
        records.append(await put_record(ground, queue))
        await until(lambda: _claimed(queue, 1))
        for number in signals:
            os.kill(os.getpid(), number)
            await trio.sleep(0.05)
        await trio.sleep_forever()

    await run(settings, visit, Told(takes=Milestone.CREATED, play=hang))
    assert failures_of(dsn, records[0]) == 0
    assert events_of(dsn, records[0])[-1][0] == "given_back"
    assert loud(told) == []
    assert of_the_service(told)[-1] == "service.stopped"


async def test_a_visitor_that_fails_is_an_error_of_the_service_and_of_no_record(
    settings: Settings, dsn: str
) -> None:
    """What runs is given back: it is not what failed."""
    records: list[UUID] = []

    async def visit(ground: Ground, queue: Queue) -> None:
        records.append(await put_record(ground, queue))
        await until(lambda: _claimed(queue, 1))
        raise OSError("the output cannot be written")

    with capture_logs(), pytest.RaisesGroup(OSError, flatten_subgroups=True):
        await run(settings, visit, Told(takes=Milestone.CREATED, play=hang))
    assert failures_of(dsn, records[0]) == 0


async def test_a_cleanup_that_fails_at_the_stop_is_told_and_given_back(
    settings: Settings, dsn: str, told: list[EventDict]
) -> None:
    """The service ends without an error; the log has what went wrong."""
    records: list[UUID] = []

    async def visit(ground: Ground, queue: Queue) -> None:
        records.append(await put_record(ground, queue))
        await until(lambda: _claimed(queue, 1))
        await trio.sleep(0.1)

    async def play(record: object, tools: object) -> None:
        del record, tools
        await RAISING["cleanup"]()

    await run(settings, visit, Told(takes=Milestone.CREATED, play=play))  # type: ignore[arg-type]  # a wrong one on purpose
    assert failures_of(dsn, records[0]) == 0
    assert loud(told) == ["record.cleanup_failed"]


async def test_s_s4_the_next_start_pays_what_is_owed(
    settings: Settings, dsn: str, told: list[EventDict]
) -> None:
    """A token in the state folder, a record that carries it: given back soon after the start."""
    records: list[UUID] = []

    async def first_run(ground: Ground, queue: Queue) -> None:
        records.append(await queue.record(lane="of another process"))
        claim = await queue.claim(["of another process"])
        (ground.folder.owed / str(claim.token)).touch()

    async def second_run(ground: Ground, queue: Queue) -> None:
        async def is_given_back() -> bool:
            return await queue.kinds(records[0]) == ["claimed", "given_back"]

        await until(is_given_back)

    await run(settings, first_run)
    assert failures_of(dsn, records[0]) == 1
    await run(settings, second_run)
    assert failures_of(dsn, records[0]) == 0
    assert "give_back.repaid" in [entry["event"] for entry in told]
    assert list((settings.state / "owed").iterdir()) == []


async def test_what_is_still_owed_at_an_orderly_end_is_on_the_disk(settings: Settings) -> None:
    """A claim of an earlier run that has not come yet: the next start goes on looking for it."""
    token = uuid4()

    async def first_run(ground: Ground, queue: Queue) -> None:
        (ground.folder.owed / str(token)).touch()

    async def second_run(ground: Ground, queue: Queue) -> None:
        (ground.folder.owed / str(token)).unlink()

    with capture_logs():
        await run(settings, first_run)
        await run(settings, second_run)
    assert [file.name for file in (settings.state / "owed").iterdir()] == [str(token)]

"""A real PostgreSQL, to be walked through the protocol."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from attrs import frozen
from psycopg.rows import dict_row

from storage import owner
from storage.claims import Claims
from storage.database import Connection, Database
from storage.floors import BOTTOM, Floors, Start
from storage.submissions import Submission, accept
from tests.builders import put_account, put_store
from tests.model.history import Event
from tests.model.row import COLUMNS, MOMENTS
from tests.model.subjects import LEASES, SIZE, Process, Seen, World

VERBS: Final = {"stop": owner.stop, "lift": owner.lift, "delete": owner.delete, "undelete": owner.undelete}
# created_at is left alone: it is an order and no measure, and nothing may move in that order.
SHIFTED: Final = sorted(MOMENTS - {"created_at"})


class _NoFloors(Floors):
    """Every claim looks at everything: what a floor hides for a moment is no part of the protocol."""

    @contextmanager
    def asking(self, lanes: Sequence[str]) -> Iterator[Start]:
        """Begin at the bottom."""
        with super().asking(lanes):
            yield Start([BOTTOM for _ in lanes], BOTTOM)


@frozen(kw_only=True)
class _CutDatabase(Database):
    """A database that commits nothing."""

    async def transact(self, work: Any, *args: Any, **kwargs: Any) -> Any:
        """Do the work, and undo it."""

        async def _in_cut(connection: Connection) -> Any:
            async with connection.transaction(force_rollback=True):
                return await work(connection, *args, **kwargs)

        return await super().transact(_in_cut)


class RealSubject:
    """A real PostgreSQL, in which all moments are pushed back to let time pass."""

    def __init__(self, database: Database, world: World) -> None:
        self.database = database
        self.claims = tuple(_claims_of(database, process) for process in world.processes)
        cut = _CutDatabase(
            dsn=database.dsn,
            call_seconds=database.call_seconds,
            listens=database.listens,
            pool=database._pool,  # noqa: SLF001 - the same pool, committing nothing
        )
        self._cut_claims = tuple(_claims_of(cut, process) for process in world.processes)

    async def begin(self) -> None:
        """Have no record."""

        async def _in_begin(connection: Connection) -> None:
            await connection.execute("DELETE FROM records")

        await self.database.transact(_in_begin)

    async def accept(self, record_id: UUID, owner_id: UUID, store_id: UUID, lane: str) -> None:
        """Accept a record."""
        submission = Submission(
            id=record_id,
            owner_id=owner_id,
            filename="talk.ogg",
            title="",
            description="",
            topics=(),
            asked_language=None,
            channels="auto",
            track=None,
            hotwords="",
            store_id=store_id,
            source_path=f"records/{record_id}/source",
            source_bytes=SIZE,
            source_sha256=bytes(32),
        )
        await accept(self.database, submission, lane=lane)

    async def born_together(self, record_ids: Iterable[UUID]) -> None:
        """Give records the same creation time."""

        async def _in_born(connection: Connection) -> None:
            await connection.execute(
                "UPDATE records SET created_at = statement_timestamp() WHERE id = ANY (%s)",
                [list(record_ids)],
            )

        await self.database.transact(_in_born)

    async def person(self, verb: str, record_id: UUID, owner_id: UUID | None, by: str) -> object:
        """Do as a person may."""
        return await VERBS[verb](self.database, record_id, owner_id, by)

    async def cut(self, process: int, step: Callable[[Any], Awaitable[object]]) -> None:
        """Let a step come to nothing."""
        await step(self._cut_claims[process])

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        moved = ", ".join(f"{column} = {column} - %(by)s" for column in SHIFTED)

        async def _in_advance(connection: Connection) -> None:
            by = {"by": timedelta(seconds=seconds)}
            statement = f"UPDATE records SET {moved}"  # noqa: S608 - of our own words
            await connection.execute(statement.encode(), by)
            await connection.execute("UPDATE events SET at = at - %(by)s", by)

        await self.database.transact(_in_advance)

    async def look(self, after_event: int) -> Seen:
        """See everything."""

        def shown(column: str) -> str:
            age = f"extract(epoch FROM clock_timestamp() - {column})::float8 AS {column}"
            return age if column in MOMENTS else column

        rows_of = f"SELECT {', '.join(map(shown, COLUMNS))} FROM records"  # noqa: S608 - of our own words
        segments_of = "SELECT record_id, text FROM segments ORDER BY slice, number"
        events_of = (
            "SELECT *, extract(epoch FROM clock_timestamp() - at)::float8 AS age"
            " FROM events WHERE id > %s ORDER BY id"
        )

        async def _in_look(connection: Connection) -> Seen:
            cursors = [connection.cursor(row_factory=dict_row) for _ in range(3)]
            async with connection.pipeline():
                await cursors[0].execute(rows_of.encode())
                await cursors[1].execute(segments_of)
                await cursors[2].execute(events_of, [after_event])
            seen, segments, events = [await cursor.fetchall() for cursor in cursors]
            rows = {row["id"]: row | {"segments": []} for row in seen}
            for segment in segments:
                rows[segment["record_id"]]["segments"].append(segment["text"])
            ages = [event.pop("age") for event in events]
            return Seen(
                rows=rows, events=[(Event(**event), age) for event, age in zip(events, ages, strict=True)]
            )

        return await self.database.transact(_in_look)


def _claims_of(database: Database, process: Process) -> Claims:
    claims = Claims(
        database=database,
        stores=process.stores,
        claimed_by=process.name,
        failures_limit=process.failures_limit,
        leases=LEASES,
    )
    object.__setattr__(claims, "floors", _NoFloors())
    return claims


async def real_subject(database: Database) -> tuple[RealSubject, World]:
    """Make the world in a migrated database, and the subject that lives in it."""
    owners = await put_account(database), await put_account(database)
    stores = await put_store(database), await put_store(database)
    world = World(owners=owners, stores=stores)
    return RealSubject(database, world), world

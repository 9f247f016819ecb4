"""What the machine of `test_protocol` drives beside the reference: a real PostgreSQL, or the fake store."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, Protocol
from uuid import UUID

import trio
from attrs import frozen
from psycopg.rows import dict_row

from storage import owner
from storage.claims import Claims
from storage.database import Connection, Database
from storage.errors import DatabaseUnavailable
from storage.floors import BOTTOM, Floors, Start
from storage.record import Milestone
from storage.submissions import Submission, accept
from tests.builders import put_account, put_store
from tests.model.fake_store import AWAY, WELL, FakeClaims, FakeStore, Fate
from tests.model.history import Event
from tests.model.row import COLUMNS, MOMENTS, Row

LEASES: Final[Mapping[Milestone, float]] = {
    Milestone.CREATED: 600.0,
    Milestone.CONVERTED: 300.0,
    Milestone.TRANSCRIBE: 900.0,
}
SIZE: Final = 4096
VERBS: Final = {"stop": owner.stop, "lift": owner.lift, "delete": owner.delete, "undelete": owner.undelete}
# created_at is left alone: it is an order and no measure, and nothing may move in that order.
SHIFTED: Final = sorted(MOMENTS - {"created_at"})


@frozen(kw_only=True)
class Process:
    """What makes a process's claims its own."""

    name: str
    stores: tuple[UUID, ...]
    failures_limit: int


@frozen(kw_only=True)
class World:
    """The two accounts and two stores, and three processes that share them."""

    owners: tuple[UUID, UUID]
    stores: tuple[UUID, UUID]

    @property
    def processes(self) -> tuple[Process, ...]:
        """The second process sees one store only, the third has a limit of its own."""
        return (
            Process(name="one", stores=self.stores, failures_limit=3),
            Process(name="two", stores=self.stores[:1], failures_limit=3),
            Process(name="three", stores=self.stores, failures_limit=2),
        )

    @staticmethod
    def name_of(owner_id: UUID) -> str:
        """Return an account's name."""
        return f"account {owner_id}"


@frozen(kw_only=True)
class Seen:
    """All that a subject holds: the columns of each record, moments as ages in seconds; and new events."""

    rows: dict[UUID, dict[str, Any]]
    events: list[tuple[Event, float]]


class Subject(Protocol):
    """What can be walked through the protocol."""

    claims: tuple[Any, ...]

    async def begin(self) -> None:
        """Have no record."""

    async def accept(self, record_id: UUID, owner_id: UUID, store_id: UUID, lane: str) -> None:
        """Accept a record."""

    async def born_together(self, record_ids: Iterable[UUID]) -> None:
        """Give records the same creation time."""

    async def person(self, verb: str, record_id: UUID, owner_id: UUID | None, by: str) -> object:
        """Do as a person may."""

    async def cut(self, process: int, step: Callable[[Any], Awaitable[object]]) -> None:
        """Let a step of a process come to nothing, just before it would have been committed."""

    async def advance(self, seconds: float) -> None:
        """Let time pass."""

    async def look(self, after_event: int) -> Seen:
        """See everything."""


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

        async def _in_look(connection: Connection) -> Seen:
            cursor = connection.cursor(row_factory=dict_row)
            statement = f"SELECT {', '.join(map(shown, COLUMNS))} FROM records"  # noqa: S608 - of our own words
            await cursor.execute(statement.encode())
            rows = {row["id"]: row | {"segments": []} for row in await cursor.fetchall()}
            await cursor.execute("SELECT record_id, text FROM segments ORDER BY slice, number")
            for segment in await cursor.fetchall():
                rows[segment["record_id"]]["segments"].append(segment["text"])
            await cursor.execute(
                "SELECT *, extract(epoch FROM clock_timestamp() - at)::float8 AS age"
                " FROM events WHERE id > %s ORDER BY id",
                [after_event],
            )
            events = [(row.pop("age"), row) for row in await cursor.fetchall()]
            return Seen(rows=rows, events=[(Event(**row), age) for age, row in events])

        return await self.database.transact(_in_look)


class FakeSubject:
    """The fake store, whose clock is set forward to let time pass."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._renewed()

    def _renewed(self) -> None:
        self.store = FakeStore()
        self.claims = tuple(self._claims_of(process, WELL) for process in self._world.processes)
        self._cut_claims = tuple(self._claims_of(process, AWAY) for process in self._world.processes)

    def _claims_of(self, process: Process, fate: Fate) -> FakeClaims:
        return FakeClaims(
            store=self.store,
            stores=process.stores,
            claimed_by=process.name,
            failures_limit=process.failures_limit,
            leases=LEASES,
            fate_of=lambda _: fate,
        )

    async def begin(self) -> None:
        """Have no record."""
        await trio.lowlevel.checkpoint()
        self._renewed()

    async def accept(self, record_id: UUID, owner_id: UUID, store_id: UUID, lane: str) -> None:
        """Accept a record."""
        await trio.lowlevel.checkpoint()
        by = World.name_of(owner_id)
        self.store.reference.accept(
            record_id, owner_id=owner_id, store_id=store_id, lane=lane, by=by, size=SIZE
        )

    async def born_together(self, record_ids: Iterable[UUID]) -> None:
        """Give records the same creation time."""
        await trio.lowlevel.checkpoint()
        rows = [self.store.reference.rows[record_id] for record_id in record_ids]
        born = max(row.created_at for row in rows)
        for row in rows:
            row.created_at = born

    async def person(self, verb: str, record_id: UUID, owner_id: UUID | None, by: str) -> object:
        """Do as a person may."""
        await trio.lowlevel.checkpoint()
        return getattr(self.store.reference, verb)(record_id, owner_id, by)

    async def cut(self, process: int, step: Callable[[Any], Awaitable[object]]) -> None:
        """Let a step come to nothing."""
        try:
            await step(self._cut_claims[process])
        except DatabaseUnavailable:
            return
        raise AssertionError("what was cut was answered")

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        await trio.lowlevel.checkpoint()
        self.store.set_clock(seconds)

    async def look(self, after_event: int) -> Seen:
        """See everything."""
        await trio.lowlevel.checkpoint()
        reference, now = self.store.reference, self.store.now()
        rows = {record_id: aged(row, now) for record_id, row in reference.rows.items()}
        return Seen(rows=rows, events=[(event, 0.0) for event in reference.events[after_event:]])


def aged(row: Row, now: float) -> dict[str, Any]:
    """Return the columns of a row of the model as a subject shows them."""
    columns = {column: getattr(row, column) for column in COLUMNS}
    for column in MOMENTS:
        if columns[column] is not None:
            columns[column] = now - columns[column]
    return columns | {"segments": [row.segments[key].text for key in sorted(row.segments)]}


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

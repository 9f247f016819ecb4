"""What the machine of `test_protocol` drives beside the reference: a real PostgreSQL, or the fake store."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Protocol
from uuid import UUID

from attrs import frozen

from storage.record import Milestone
from tests.model.history import Event
from tests.model.row import COLUMNS, MOMENTS, Row

LEASES: Final[Mapping[Milestone, float]] = {
    Milestone.CREATED: 600.0,
    Milestone.CONVERTED: 300.0,
    Milestone.TRANSCRIBE: 900.0,
}
SIZE: Final = 4096


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


def aged(row: Row, now: float) -> dict[str, Any]:
    """Return the columns of a row of the model as a subject shows them."""
    columns = {column: getattr(row, column) for column in COLUMNS}
    for column in MOMENTS:
        if columns[column] is not None:
            columns[column] = now - columns[column]
    return columns | {"segments": [row.segments[key].text for key in sorted(row.segments)]}

"""The fake store, to be walked through the protocol."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from uuid import UUID

import trio

from storage.errors import DatabaseUnavailable
from tests.model.fake_store import AWAY, WELL, FakeClaims, FakeStore, Fate
from tests.model.subjects import LEASES, SIZE, Process, Seen, World, aged


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

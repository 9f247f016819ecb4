"""Proves from the events that records were claimed in order, wherever the events decide it.

Who is ready when is known only at some moments: from an event that makes a record ready at once until its
next one. A claim within such a moment, by margins that cover a statement's own length, must not have taken a
record that comes later in the order, at the same milestone (so of the same lane) and of the same store.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final
from uuid import UUID

from attrs import frozen

from storage.record import Milestone
from tests.model.history import Event, by_record

ORDER_MARGIN_SECONDS: Final = 5.0
Place = tuple[datetime, UUID]


@frozen(kw_only=True)
class _Wait:
    """A record certainly ready, seen by every claim that began after `since` and was over by `until`."""

    place: Place
    queue: tuple[str, object]
    since: datetime
    until: datetime


@frozen(kw_only=True)
class _Claimed:
    """A claim that took the record at `place` of the queue."""

    event: Event
    place: Place
    queue: tuple[str, object]


@frozen
class OrderSeen:
    """How many claims the events decide on, and a sentence for each that went out of order."""

    decided: int
    faults: list[str]


def order_seen(
    events: Iterable[Event],
    *,
    failures_limit: int,
    stores: Mapping[UUID, object] | None = None,
    created_at: Mapping[UUID, datetime] | None = None,
    margin_seconds: float = ORDER_MARGIN_SECONDS,
) -> OrderSeen:
    """Judge the order of the claims.

    `margin_seconds` covers the longest that any statement of the protocol took, its commit included; `stores`
    tells the store of each record where there is more than one, `created_at` what its row says where records
    were accepted side by side. An exhausted record needs no free lane, so its claim says nothing of those
    before it.
    """
    margin = timedelta(seconds=margin_seconds)
    waits: list[_Wait] = []
    claims: list[_Claimed] = []
    for record_id, history in by_record(events).items():
        place = (history[0].at if created_at is None else created_at[record_id], record_id)
        store = None if stores is None else stores[record_id]
        waits += _waits_of(history, place, store, margin)
        claims += [
            _Claimed(event=event, place=place, queue=(event.milestone, store))
            for event in history
            if event.kind == "claimed" and event.detail["failures"] <= failures_limit
        ]
    return _sweep(waits, claims)


def _waits_of(history: list[Event], place: Place, store: object, margin: timedelta) -> Iterator[_Wait]:
    stopped = deleted = False
    for event, following in pairwise(history):
        stopped = event.kind == "stopped" or (stopped and event.kind != "lifted")
        deleted = event.kind == "deleted" or (deleted and event.kind != "undeleted")
        if stopped or deleted or event.milestone == Milestone.DONE or not _ready_at_once(event):
            continue
        since, until = event.at + margin, following.at - margin
        if since < until:
            yield _Wait(place=place, queue=(event.milestone, store), since=since, until=until)


def _ready_at_once(event: Event) -> bool:
    """True when an event leaves its record ready without a delay; how long a failed one waits is not told."""
    if event.kind == "deferred":
        return float(event.detail.get("delay", 1)) <= 0
    return event.kind in ("accepted", "reached", "given_back", "lifted", "undeleted")


def _sweep(waits: list[_Wait], claims: list[_Claimed]) -> OrderSeen:
    waits.sort(key=lambda wait: wait.since)
    claims.sort(key=lambda claimed: claimed.event.at)
    first: dict[tuple[str, object], list[tuple[Place, datetime]]] = {}
    coming, decided, said = 0, 0, []
    for claimed in claims:
        now = claimed.event.at
        while coming < len(waits) and waits[coming].since < now:
            wait = waits[coming]
            heapq.heappush(first.setdefault(wait.queue, []), (wait.place, wait.until))
            coming += 1
        waiting = first.get(claimed.queue, [])
        while waiting and waiting[0][1] <= now:
            heapq.heappop(waiting)
        if not waiting:
            continue
        decided += 1
        place, _ = waiting[0]
        if place < claimed.place:
            said.append(
                f"event {claimed.event.id}: record {claimed.place[1]} was claimed before {place[1]}, which"
                f" came first at {claimed.event.milestone} and was ready"
            )
    return OrderSeen(decided=decided, faults=said)

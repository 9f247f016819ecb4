"""Proves from the events alone that the protocol was kept: a pure function over what the database remembers.

It knows nothing of leases that were renewed, nor of locks, nor of when a commit became visible: what the
events do not decide is passed over, so that every fault it tells is one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from attrs import define, field, frozen

from storage.record import Milestone

ORDER: Final = tuple(Milestone)
OF_A_CLAIM: Final = frozenset({"claimed", "reached", "deferred", "failed", "timed_out", "given_back"})
SLACK_SECONDS: Final = 1.0


@frozen(kw_only=True)
class Event:
    """One row of `events`; `id` orders the events of one record as they were committed."""

    id: int
    record_id: UUID
    at: datetime
    kind: str
    milestone: str
    token: UUID | None
    settles: bool
    by: str
    detail: Mapping[str, Any]


@define(kw_only=True)
class Standing:
    """What the events say of a record; `count` is claims less what was given back since the last reset."""

    milestone: Milestone = Milestone.CREATED
    count: int = 0
    holder: UUID | None = None
    holder_until: datetime | None = None
    stopped: bool = False
    deleted: bool = False
    ended: set[UUID] = field(factory=set)

    @property
    def in_work(self) -> bool:
        """True when the record must still come to an end by itself."""
        return not (self.stopped or self.deleted or self.milestone is Milestone.DONE)

    def release(self) -> None:
        """Nobody holds the record any more."""
        self.holder = self.holder_until = None


def by_record(events: Iterable[Event]) -> dict[UUID, list[Event]]:
    """Return the history of each record, the oldest event first."""
    found: defaultdict[UUID, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.id):
        found[event.record_id].append(event)
    return dict(found)


def standings(events: Iterable[Event]) -> dict[UUID, Standing]:
    """Return where each record stands after its last event."""
    return {record_id: _walk(history, timedelta())[0] for record_id, history in by_record(events).items()}


def faults(events: Iterable[Event], *, slack_seconds: float = SLACK_SECONDS) -> list[str]:
    """Return every breach of the protocol that the events prove, a sentence each.

    `slack_seconds` is how far the database's clock may have been set back, and how long a claim may take from
    reading that clock to writing its event.
    """
    seen = list(events)
    found = list(_shared_tokens(seen))
    for record_id, history in by_record(seen).items():
        _, said = _walk(history, timedelta(seconds=slack_seconds))
        found += [f"record {record_id}, {sentence}" for sentence in said]
    return found


def _shared_tokens(events: list[Event]) -> Iterator[str]:
    claimed: set[UUID] = set()
    settled: set[UUID] = set()
    for event in sorted(events, key=lambda event: event.id):
        if event.token is None:
            continue
        if event.kind == "claimed":
            if event.token in claimed:
                yield f"event {event.id}: token {event.token} was claimed before"
            claimed.add(event.token)
        if event.settles:
            if event.token in settled:
                yield f"event {event.id}: token {event.token} was settled before"
            settled.add(event.token)


def _walk(history: list[Event], slack: timedelta) -> tuple[Standing, list[str]]:
    standing, said = Standing(), []
    for place, event in enumerate(history):
        what = f"event {event.id} ({event.kind})"
        said += [f"{what}: {fault}" for fault in _breaches(standing, event, first=place == 0, slack=slack)]
        _advance(standing, event)
    return standing, said


def _breaches(standing: Standing, event: Event, *, first: bool, slack: timedelta) -> Iterator[str]:
    if first != (event.kind == "accepted"):
        yield "a history begins with its acceptance, and nothing is accepted twice"
    yield from _wrong_milestone(standing, event)
    if (event.kind in OF_A_CLAIM) != (event.token is not None) and event.kind != "stopped":
        yield "it belongs to no claim where it must, or to one where it must not"
    if event.settles:
        if event.token != standing.holder:
            yield f"token {event.token} ends what it does not hold"
    elif event.kind in OF_A_CLAIM - {"claimed"}:
        yield "the end of a claim does not settle it"
    if check := _ALLOWED.get(event.kind):
        yield from check(standing, event, slack)


def _wrong_milestone(standing: Standing, event: Event) -> Iterator[str]:
    at = Milestone(event.milestone)
    if event.kind != "reached":
        if at is not standing.milestone:
            yield f"it is told at {at}, where the record stands at {standing.milestone}"
    elif ORDER.index(at) != ORDER.index(standing.milestone) + 1:
        yield f"it goes from {standing.milestone} to {at}"


def _claim_breaches(standing: Standing, event: Event, slack: timedelta) -> Iterator[str]:
    if not standing.in_work:
        yield "what is done, stopped or deleted was claimed"
    if standing.holder_until is not None and event.at < standing.holder_until - slack:
        yield f"claimed while token {standing.holder} held it until {standing.holder_until} at least"
    if event.detail.get("failures") != standing.count + 1:
        yield f"the count says {event.detail.get('failures')} after {standing.count}"


def _stop_breaches(standing: Standing, event: Event, slack: timedelta) -> Iterator[str]:
    del slack
    if not standing.in_work:
        yield "what is done, stopped or deleted was stopped"
    if not event.detail.get("code") or not event.detail.get("reason"):
        yield "a stop without its reason"
    if event.settles != (event.token is not None):
        yield "a stop by the holder that does not settle the claim"


def _lift_breaches(standing: Standing, event: Event, slack: timedelta) -> Iterator[str]:
    del event, slack
    if not standing.stopped or standing.deleted:
        yield "what is not stopped, or is deleted, was lifted"


def _delete_breaches(standing: Standing, event: Event, slack: timedelta) -> Iterator[str]:
    del slack
    if standing.deleted is (event.kind == "deleted"):
        yield f"{event.kind} where that changes nothing"


_ALLOWED: Final[Mapping[str, Callable[[Standing, Event, timedelta], Iterator[str]]]] = {
    "claimed": _claim_breaches,
    "stopped": _stop_breaches,
    "lifted": _lift_breaches,
    "deleted": _delete_breaches,
    "undeleted": _delete_breaches,
}


def _advance(standing: Standing, event: Event) -> None:
    """Follow an event, also a wrong one: what comes after is judged by what the database says."""
    match event.kind:
        case "claimed":
            standing.count += 1
            standing.holder = event.token
            lease = timedelta(seconds=float(event.detail.get("lease_seconds", 0)))
            standing.holder_until = event.at + lease
        case "given_back":
            standing.count -= 1
        case "reached":
            standing.milestone, standing.count = Milestone(event.milestone), 0
        case "deferred" | "lifted":
            standing.count = 0
        case "stopped" if event.detail.get("failures_reset"):
            standing.count = 0
        case "deleted":
            standing.count -= standing.holder is not None
        case _:
            pass
    if event.kind not in ("accepted", "claimed", "edited"):
        standing.release()
    standing.stopped = event.kind == "stopped" or (standing.stopped and event.kind != "lifted")
    standing.deleted = event.kind == "deleted" or (standing.deleted and event.kind != "undeleted")

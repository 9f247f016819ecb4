"""What must be true in the end, whatever was done: nothing lost, doubled, overwritten or out of order."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from uuid import UUID

from storage.record import Milestone
from tests.model.history import Event, faults, standings
from tests.model.order import order_seen
from tests.torture.people import Sent
from tests.torture.server import Server
from tests.torture.terms import FAILURES_LIMIT

# So long may a statement of the calm end take on a busy machine.
CALM_STATEMENT_SECONDS = 0.8


def judged(
    server: Server, store: Path, sent: Iterable[Sent], calm_since: datetime, counts: Counter[str]
) -> list[str]:
    """Return everything that is not as it must be, a sentence each; count what was looked at."""
    events = [Event(**row) for row in server.ask("SELECT * FROM events ORDER BY id")]
    said = faults(events)
    said += _rows(server, events, store, counts)
    said += _sent(server, sent, counts)
    created = {row["id"]: row["created_at"] for row in server.ask("SELECT id, created_at FROM records")}
    order = order_seen(
        [event for event in events if event.at >= calm_since],
        failures_limit=FAILURES_LIMIT,
        created_at=created,
        margin_seconds=CALM_STATEMENT_SECONDS,
    )
    counts["claims whose order was decided"] = order.decided
    kinds = Counter(event.kind for event in events)
    for kind in ("claimed", "reached", "deferred", "failed", "timed_out", "given_back", "stopped"):
        counts[f"events: {kind}"] = kinds[kind]
    ended = {event.token for event in events if event.settles}
    counts["claims without an end"] = sum(
        event.kind == "claimed" and event.token not in ended for event in events
    )
    return said + order.faults


def _rows(server: Server, events: list[Event], store: Path, counts: Counter[str]) -> Iterator[str]:
    """Every row says what its events say, and is done; its file is there."""
    standing = standings(events)
    for row in server.ask("SELECT * FROM records"):
        counts["records"] += 1
        told, name = standing[row["id"]], f"record {row['id']}"
        if row["milestone"] != Milestone.DONE:
            yield f"{name} is not done but at {row['milestone']}: {row['stop_reason']}"
        if (row["milestone"], row["failures"]) != (told.milestone, told.count):
            yield f"{name} stands at {row['milestone']} with {row['failures']}, its events at {told}"
        if row["claim_token"] is not None:
            yield f"{name} is held, though nobody works"
        if row["audio_path"] is None or not (store / row["audio_path"]).is_file():
            yield f"{name} has no audio at {row['audio_path']}"


def _sent(server: Server, sent: Iterable[Sent], counts: Counter[str]) -> Iterator[str]:
    """Whoever was told that a recording is accepted has its whole text, each slice once and in order."""
    texts = {
        row["id"]: row["recognised_text"] for row in server.ask("SELECT id, recognised_text FROM records")
    }
    slices: dict[UUID, list[str]] = {}
    for row in server.ask("SELECT record_id, text FROM segments ORDER BY record_id, slice, number"):
        slices.setdefault(row["record_id"], []).append(row["text"])
    for each in sent:
        counts["accepted and told so"] += 1
        if each.record_id not in texts:
            yield f"record {each.record_id} was accepted and is lost"
        elif texts[each.record_id] != each.text or " ".join(slices.get(each.record_id, [])) != each.text:
            yield f"record {each.record_id} has the text {texts[each.record_id]!r}, not {each.text!r}"

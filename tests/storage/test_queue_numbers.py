"""The queue in numbers is what the claim would find."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.queue_numbers import read_queue
from storage.record import Milestone
from tests.builders import Queue


async def test_each_record_to_be_worked_on_is_counted_once(queue: Queue) -> None:
    """Waiting, held, delayed, lapsed (which waits again); not the stopped, the deleted and the done."""
    now = datetime.now(UTC)
    held = await queue.record()
    assert (await queue.claim()).record_id == held
    waiting = [await queue.record() for _ in range(3)]
    await queue.change(waiting[1], milestone_since=now - timedelta(seconds=100))
    delayed, stopped, deleted = [await queue.record(Milestone.TRANSCRIBE) for _ in range(3)]
    await queue.change(delayed, wake_at=now + timedelta(hours=1))
    await queue.change(stopped, stop_code="silent", stop_reason="x", stopped_at=now, stopped_by="x")
    await queue.change(deleted, deleted_at=now)
    await queue.record(Milestone.DONE)
    heaps = {(heap.milestone, heap.lane, heap.state): heap for heap in await read_queue(queue.database)}
    assert {key: heap.records for key, heap in heaps.items()} == {
        ("created", "convert", "held"): 1,
        ("created", "convert", "waiting"): 3,
        ("transcribe", "whisper", "delayed"): 1,
    }
    assert heaps["created", "convert", "waiting"].oldest_seconds == pytest.approx(100, abs=60)
    await queue.lapse(held)
    states = {heap.state: heap.records for heap in await read_queue(queue.database)}
    assert states == {"waiting": 4, "delayed": 1}

"""The queue in memory keeps the same promises as the real one: both are walked through the same steps."""

from uuid import uuid4

from storage import owner
from storage.claim import Claim, NotFound
from storage.claims import Passage
from storage.database import Database
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.record import Milestone, Record, StopCode
from tests.builders import EVERY_LANE, FOUND, Queue, a_queue, advance
from tests.daemon.memory import MemoryQueue

WAY = Passage(gives=Milestone.CONVERTED, next_lane="whisper", milestone_limit=3600.0, retry_delay=0.0)
LATER = Passage(gives=Milestone.CONVERTED, next_lane="whisper", milestone_limit=3600.0, retry_delay=60.0)
LAST = Passage(gives=Milestone.DONE, next_lane=None, milestone_limit=3600.0, retry_delay=0.0)


async def walk(queue: Queue | MemoryQueue) -> list[object]:  # noqa: PLR0915 - one step after another
    """Go through the protocol; return every answer, without what is by chance."""
    claims = queue.claims
    trace: list[object] = []
    lost = Claim(record_id=uuid4(), token=uuid4())

    async def claim() -> Claim:
        claimed = await claims.claim(uuid4(), EVERY_LANE)
        assert isinstance(claimed, Claim)
        return claimed

    async def see(held: Claim | None = None) -> None:
        row = await queue.row(record)
        trace.append((str(row["milestone"]), row["failures"], row["lane"], str(row["stop_code"])))
        trace.append(row["claim_token"] == (held and held.token))

    trace.append(await claims.claim(uuid4(), EVERY_LANE))
    trace.append(await claims.give_back(lost.token, "test"))
    trace.append(await claims.renew([lost.token]))
    trace.append(type(await claims.read(lost.record_id)))
    record = await queue.record()
    trace.append(await claims.claim(uuid4(), ["whisper"]))
    first = await claim()
    await see(first)
    read = await claims.read(record)
    assert isinstance(read, Record)
    trace += [read.id == first.record_id, read.claim_token == first.token, read.failures, read.milestone]
    trace.append(await claims.last_failure(first))
    trace.append(await claims.claim(uuid4(), EVERY_LANE))
    trace.append((await claims.renew([first.token, lost.token])) == {first.token: 60.0})
    trace.append(await claims.settle(first, Failed("ValueError: bad"), WAY, {"cause": "ValueError: bad"}))
    trace.append(await claims.settle(first, Failed("ValueError: bad"), WAY, {"cause": "ValueError: bad"}))
    await see()
    second = await claim()
    trace.append(await claims.last_failure(second))
    trace.append(await claims.settle(second, GivenBack("stop"), WAY, {"cause": "stop"}))
    await see()
    third = await claim()
    trace.append(await claims.last_failure(third))
    await queue.lapse(record)
    fourth = await claim()
    trace.append(await claims.settle(third, Reached(FOUND[Milestone.CREATED]), WAY, {}))
    trace.append(await claims.last_failure(fourth))
    await see(fourth)
    trace.append(await claims.give_back(fourth.token, "late"))
    trace.append(await claims.give_back(fourth.token, "late"))
    await see()
    fifth = await claim()
    trace.append(await claims.settle(fifth, TimedOut("too long"), LATER, {"cause": "too long"}))
    trace.append(await claims.claim(uuid4(), ["whisper"]))
    await see()
    # Its failures have run out: no lane holds it back, its delay does.
    trace.append(await claims.claim(uuid4(), EVERY_LANE))
    other = await queue.record()
    trace.append((await claim()).record_id == other)
    await queue.delete(other) if isinstance(queue, MemoryQueue) else await owner.delete(
        queue.database, other, None, "test"
    )
    trace.append((await claims.read(other)) == NotFound(other))
    record = await queue.record(Milestone.TRANSCRIBE)
    sixth = await claim()
    trace.append(await claims.settle(sixth, Deferred(0.0, advance(), "so far"), LAST, {"state": "so far"}))
    await see()
    seventh = await claim()
    trace.append(await claims.settle(seventh, Reached(advance()), LAST, {}))
    await see()
    trace.append(await claims.claim(uuid4(), EVERY_LANE))
    record = await queue.record()
    eighth = await claim()
    trace.append(await claims.settle(eighth, Hopeless(StopCode.NO_AUDIO, "none"), WAY, {}))
    await see()
    record = await queue.record(failures=3)
    ninth = await claims.claim(uuid4(), [])
    assert isinstance(ninth, Claim), "an exhausted record needs no lane"
    await queue.stop(record) if isinstance(queue, MemoryQueue) else await owner.stop(
        queue.database, record, None, "test"
    )
    trace.append(await claims.settle(ninth, Failed("late"), WAY, {"cause": "late"}))
    await see()
    await claims.wake()
    return trace


async def test_both_queues_answer_alike(database: Database) -> None:
    """Step by step, from an empty queue to the last milestone."""
    assert await walk(MemoryQueue()) == await walk(await a_queue(database))

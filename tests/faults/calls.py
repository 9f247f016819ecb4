"""The calls to the database that may be said again: each by `far`, on a record that `near` made for it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final
from uuid import UUID, uuid4

from attrs import frozen

from storage import owner
from storage.claim import NotFound
from storage.database import Database
from storage.ending import Deferred, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.keys import HeldKey, take_key
from storage.owner import Verdict
from storage.record import Milestone, StopCode
from storage.submissions import accept, accept_or_find, accept_under_key
from storage.uploads import Begun, begin_upload, finish_upload, hold_upload
from tests.builders import EVERY_LANE, Queue, Written, passage_of
from tests.faults.courses import HOLDS
from tests.faults.proof import a_submission, accepted

Verb = Callable[[Database, UUID, UUID | None, str], Awaitable[Verdict | NotFound]]
Act = Callable[[], Awaitable[object]]
Prepare = Callable[[Queue, Queue], Awaitable["Call"]]


@frozen
class Call:
    """A call that may be said again, on a record made for it; `adds` is the event that it writes, once."""

    record_id: UUID
    act: Act
    adds: str | None = None


async def _claim(near: Queue, far: Queue) -> Call:
    record_id, token = await accepted(near), uuid4()
    return Call(record_id, partial(far.claims.claim, token, EVERY_LANE), "claimed")


async def _read(near: Queue, far: Queue) -> Call:
    return Call(record_id := await accepted(near), partial(far.claims.read, record_id))


async def _wake(near: Queue, far: Queue) -> Call:
    record_id = await accepted(near)
    await near.claim()
    await near.lapse(record_id)
    return Call(record_id, far.claims.wake)


async def _renew(near: Queue, far: Queue) -> Call:
    record_id = await accepted(near)
    return Call(record_id, partial(far.claims.renew, [(await near.claim()).token]))


async def _last_failure(near: Queue, far: Queue) -> Call:
    record_id = await accepted(near)
    return Call(record_id, partial(far.claims.last_failure, await near.claim()))


async def _give_back(near: Queue, far: Queue) -> Call:
    record_id = await accepted(near)
    token = (await near.claim()).token
    return Call(record_id, partial(far.claims.give_back, token, "a test"), "given_back")


def _settle(ending: Written, adds: str) -> Prepare:
    async def prepare(near: Queue, far: Queue) -> Call:
        record_id = await accepted(near, Milestone.TRANSCRIBE)
        claim = await near.claim()
        act = partial(far.claims.settle, claim, ending, passage_of(Milestone.TRANSCRIBE), {})
        return Call(record_id, act, adds)

    return prepare


async def _accept(near: Queue, far: Queue) -> Call:
    submission = a_submission(near)
    return Call(submission.id, partial(accept, far.database, submission, lane="convert"), "accepted")


async def _accept_or_find(near: Queue, far: Queue) -> Call:
    submission = a_submission(near)
    act = partial(accept_or_find, far.database, submission, lane="convert")
    return Call(submission.id, act, "accepted")


async def _accept_under_key(near: Queue, far: Queue) -> Call:
    submission = a_submission(near)
    held = await take_key(near.database, near.owner, str(submission.id))
    assert isinstance(held, HeldKey)
    act = partial(accept_under_key, far.database, submission, held, bytes(32), lane="convert")
    return Call(submission.id, act, "accepted")


async def _finish_upload(near: Queue, far: Queue) -> Call:
    submission, holder = a_submission(near), uuid4()
    begun = Begun(
        id=submission.id,
        account_id=near.owner,
        store_id=near.store,
        bytes=submission.source_bytes,
        metadata="",
        options={},
        kept_seconds=60,
    )
    await begin_upload(near.database, begun, 10**6)
    await hold_upload(near.database, begun.id, near.owner, holder, 60)
    act = partial(finish_upload, far.database, submission, holder, lane="convert")
    return Call(submission.id, act, "accepted")


def _verb(verb: Verb, adds: str, *first: Verb, held: bool = False) -> Prepare:
    async def prepare(near: Queue, far: Queue) -> Call:
        record_id = await accepted(near)
        if held:
            await near.claim()
        for earlier in first:
            assert await earlier(near.database, record_id, near.owner, "anna") is Verdict.DONE
        return Call(record_id, partial(verb, far.database, record_id, far.owner, "anna"), adds)

    return prepare


CALLS: Final[Mapping[str, Prepare]] = {
    "claim": _claim,
    "read": _read,
    "wake": _wake,
    "renew": _renew,
    "last failure": _last_failure,
    "reached": _settle(Reached(HOLDS), "reached"),
    "deferred": _settle(Deferred(0, HOLDS), "deferred"),
    "overdue": _settle(Deferred(7200, HOLDS), "stopped"),
    "hopeless": _settle(Hopeless(StopCode.SILENT, "nothing said"), "stopped"),
    "failed": _settle(Failed("broken"), "failed"),
    "timed out": _settle(TimedOut("slow"), "timed_out"),
    "given back": _settle(GivenBack("stop"), "given_back"),
    "give back": _give_back,
    "accept": _accept,
    "accept or find": _accept_or_find,
    "accept under key": _accept_under_key,
    "finish upload": _finish_upload,
    "stop": _verb(owner.stop, "stopped", held=True),
    "lift": _verb(owner.lift, "lifted", owner.stop),
    "delete": _verb(owner.delete, "deleted", held=True),
    "undelete": _verb(owner.undelete, "undeleted", owner.delete),
}

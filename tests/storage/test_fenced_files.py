"""Files are fenced by the claim."""

from uuid import UUID, uuid4

from storage.audio import Store
from storage.claim import Claim, ClaimLost
from storage.claims import Claims, Passage, Settled
from storage.database import Database
from storage.ending import Reached
from storage.record import Conversion, Milestone, Record
from tests.making import LANE, a_record, an_account, put

PASSAGE = Passage(gives=Milestone.CONVERTED, next_lane="whisper", milestone_limit=600, retry_delay=0)


async def converted(store: Store, record_id: UUID, token: UUID, content: bytes) -> Reached:
    """Write a recognition copy as an attempt does; return what its settle would publish."""
    folder = await store.attempt_folder(record_id, token)
    (folder / "audio.w64").write_bytes(content)
    found = Conversion(
        audio_path=f"records/{record_id}/{token}/audio.w64",
        declared_seconds=1.0,
        decoded_seconds=1.0,
        audio_warnings=(),
    )
    return Reached(found)


async def test_s_s5_only_a_settle_publishes_a_file(database: Database, store: Store) -> None:
    """Of two attempts the row names the one's file that settled, whole; the other's folder is swept."""
    account, _ = await an_account(database)
    record_id = await a_record(database, store, account)
    claims = Claims(
        database=database,
        stores=(store.id,),
        claimed_by="test",
        failures_limit=5,
        leases=dict.fromkeys(Milestone, 60.0),
    )
    first, second, third = uuid4(), uuid4(), uuid4()
    assert await claims.claim(first, [LANE]) == Claim(record_id=record_id, token=first)
    lost = await converted(store, record_id, first, b"the first one's")
    await put(database, "UPDATE records SET lease_until = now(), wake_at = now()")
    assert await claims.claim(second, [LANE]) == Claim(record_id=record_id, token=second)
    held = await converted(store, record_id, second, b"the second one's")

    assert await claims.settle(Claim(record_id=record_id, token=first), lost, PASSAGE, {}) == ClaimLost()
    unpublished = await claims.read(record_id)
    assert isinstance(unpublished, Record)
    assert unpublished.audio_path is None
    await store.sweep_attempts(record_id, {str(second)})
    assert not store.path(f"records/{record_id}/{first}").exists()

    assert await claims.settle(Claim(record_id=record_id, token=second), held, PASSAGE, {}) == Settled()
    assert await claims.claim(third, ["whisper"]) == Claim(record_id=record_id, token=third)
    await store.attempt_folder(record_id, third)
    published = await claims.read(record_id)
    assert isinstance(published, Record)
    assert published.audio_path is not None
    await store.sweep_attempts(record_id, {str(third), str(second)})
    assert store.path(published.audio_path).read_bytes() == b"the second one's"
    assert store.source(record_id).exists()

"""What is over: keys, sessions, unfinished uploads, deleted records and the bytes of all of them."""

import structlog

from storage.audio import Store
from storage.database import Database
from storage.keys import forget_keys
from storage.leftovers import UNKNOWN_AFTER, older_than, removed_unless_held
from storage.removals import carry_out_removals, purge_deleted
from storage.sessions import forget_sessions
from storage.upload_files import UPLOADS
from storage.uploads import expire_uploads, unfinished_of

log = structlog.get_logger()


async def tidy(database: Database, store: Store) -> None:
    """Let everything go whose lease or days are over; raises DatabaseUnavailable, and may be said again."""
    await forget_keys(database)
    await forget_sessions(database)
    for upload_id in await expire_uploads(database, store.id):
        log.info("upload.expired", record=upload_id)
    await _sweep_uploads(database, store)
    await purge_deleted(database)
    await carry_out_removals(database, store)


async def _sweep_uploads(database: Database, store: Store) -> None:
    """Remove names in `uploads/` that nobody will go on with; what became a record keeps its other name."""
    uploads = store.root / UPLOADS
    old = await store.in_thread(older_than, uploads, UNKNOWN_AFTER)
    for upload_id in old - await unfinished_of(database, sorted(old)):
        if await store.in_thread(removed_unless_held, uploads / str(upload_id)):
            log.info("leftover.removed", record=upload_id, cause="no upload goes on with it")

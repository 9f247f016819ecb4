"""Where an attempt works: its own fenced folder, and the tools its stage is handed."""

import errno
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePosixPath

import trio
from attrs import frozen

from stages.stage import Children, Tools
from storage.audio import Store
from storage.claim import Claim
from storage.record import Record


@frozen(kw_only=True)
class Workplace:
    """The store and the children of this process."""

    store: Store
    children: Children

    @asynccontextmanager
    async def tools(
        self, claim: Claim, record: Record, *, last_fault: str | None, attempts_left: int
    ) -> AsyncIterator[Tools]:
        """Fence a folder for this attempt, after sweeping those whose claims are gone; hand out the tools.

        Only who holds the claim may sweep: a folder of another token belongs to nobody now, unless the row
        names it. The claim is ours until the deadline around the block at least.
        """
        until = time.monotonic() + trio.current_effective_deadline() - trio.current_time()
        await self.store.sweep_attempts(record.id, keep={str(claim.token), *_named(record)}, until=until)
        folder = await self.store.attempt_folder(record.id, claim.token)
        try:
            yield Tools(
                source=self.store.path(record.source_path),
                audio=None if record.audio_path is None else self.store.path(record.audio_path),
                folder=folder,
                children=self.children,
                token=claim.token,
                last_fault=last_fault,
                attempts_left=attempts_left,
            )
        finally:
            try:
                folder.rmdir()
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                    raise


def _named(record: Record) -> set[str]:
    """Return the attempt folders that the row names."""
    return set() if record.audio_path is None else {PurePosixPath(record.audio_path).parts[2]}

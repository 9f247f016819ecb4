"""A resumable upload, as its sender sees it and as it lies between two requests."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from attrs import frozen


@frozen(kw_only=True)
class Upload:
    """`received` of `bytes` are flushed and counted; once `finished_at`, the record of the same id exists."""

    id: UUID
    store_id: UUID
    expires_at: datetime
    bytes: int
    received: int
    metadata: str
    options: Mapping[str, Any]
    finished_at: datetime | None

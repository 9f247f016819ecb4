"""Who records belong to, and how they prove it."""

from datetime import datetime
from uuid import UUID

from attrs import frozen


@frozen(kw_only=True)
class Account:
    """A record owner; `is_service_owner`: this one sees the service as a whole too, in the panel."""

    id: UUID
    name: str
    created_at: datetime
    disabled_at: datetime | None
    is_service_owner: bool


@frozen(kw_only=True)
class Token:
    """A bearer token as listed; its secret is shown once, when it is issued, and kept as a hash only."""

    id: UUID
    account_id: UUID
    name: str
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None

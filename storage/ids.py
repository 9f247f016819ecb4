"""Ids of ours: UUIDv7 (RFC 9562), so that they sort by the moment they were made."""

import os
import time
from uuid import UUID


def new_id() -> UUID:
    """Return a UUIDv7: 48 bits of milliseconds since 1970 and 74 random ones."""
    moment = time.time_ns() // 1_000_000 & (1 << 48) - 1
    chance = int.from_bytes(os.urandom(10), "big")
    high, low = chance >> 68, chance & (1 << 62) - 1
    return UUID(int=moment << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low)

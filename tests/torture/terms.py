"""The settings of the daemons under torture, and what follows from them (seconds)."""

from collections.abc import Mapping
from typing import Final

LEASE: Final = 2.0
POLL: Final = 0.2
FAILURES_LIMIT: Final = 6
UNAVAILABLE: Final = 75  # the exit code of a daemon that found no database
CLOCKS: Final = (0.0, 3600.0, -3600.0)  # how far off the clock of each daemon is

SECTIONS: Final[Mapping[str, Mapping[str, object]]] = {
    "work": {
        "workers": 4,
        "poll_seconds": POLL,
        "renew_seconds": 0.4,
        "failures_limit": FAILURES_LIMIT,
        "first_retry_seconds": 0.05,
        "longest_retry_seconds": 0.2,
        "settle_seconds": 20.0,
        "grace_seconds": 0.3,
        "exit_seconds": 4.0,
    },
    "convert": {"lease_seconds": LEASE, "slots": 2},
    "whisper": {"lease_seconds": LEASE, "slots": 3},
    "database": {"statement_seconds": 0.8, "call_seconds": 2.0, "pool_size": 6},
}

"""The database's outages: one line in the log when one begins, one when it ends."""

import math

import structlog
import trio

from daemon.metrics import Metrics
from storage.errors import DatabaseUnavailable

log = structlog.get_logger()


class Outage:
    """Whether the database is away, told once."""

    def __init__(self, metrics: Metrics) -> None:
        """Begin with the database there."""
        self._metrics = metrics
        self._since: float | None = None
        self._answered_at = -math.inf

    @property
    def lasts(self) -> bool:
        """True while the database is known to be away."""
        return self._since is not None

    def noticed(self, error: DatabaseUnavailable, asked_at: float) -> None:
        """A call made at `asked_at` could not be answered; one from before the last answer is no news."""
        if self._since is None and asked_at >= self._answered_at:
            self._since = trio.current_time()
            self._metrics.database_away(away=True)
            log.error("database.away", reason=str(error))

    def over(self) -> None:
        """A call was answered."""
        self._answered_at = trio.current_time()
        if self._since is not None:
            seconds = trio.current_time() - self._since
            self._since = None
            self._metrics.database_away(away=False)
            log.info("database.returned", away_seconds=round(seconds, 1))

"""What both ways of claiming do alike: a queue to empty, and what is measured while it is emptied."""

import json
import resource
import sys
import time
from uuid import UUID

from attrs import define, field

from storage.record import Conversion

LANE = "convert"
LEASE_SECONDS = 60.0
FAILURES_LIMIT = 5
STATEMENT_SECONDS = 5.0
# The first claims open connections and prepare statements.
WARMING = 30

FINDINGS = Conversion(
    audio_path="records/x/y/audio.w64", declared_seconds=60.0, decoded_seconds=60.0, audio_warnings=()
)


@define
class Count:
    """Counts settled records; the clocks start when the warming is over."""

    settled: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    _began: tuple[float, float] = field(default=(0.0, 0.0), init=False)

    def settle(self) -> None:
        """One more record was claimed and settled."""
        self.settled += 1
        if self.settled == WARMING:
            self._began = _clocks()
        wall, cpu = _clocks()
        self.wall, self.cpu = wall - self._began[0], cpu - self._began[1]

    def report(self) -> None:
        """Write what was measured for whoever started this process."""
        json.dump({"settled": self.settled - WARMING, "wall": self.wall, "cpu": self.cpu}, sys.stdout)


def arguments() -> tuple[str, UUID, int]:
    """Return DSN, store and number of workers, as given on the command line."""
    dsn, store, workers = sys.argv[1:]
    return dsn, UUID(store), int(workers)


def _clocks() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime + used.ru_stime

"""The daemons under torture: started, hurt, and started again, each on its own state folder and one store."""

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final

import httpx

from tests.acceptance.rig import Daemon, Rig
from tests.torture.terms import CLOCKS, SECTIONS, UNAVAILABLE

TOLD: Final = ("claim.lost", "database.away", "lane.closed", "give_back.owed", "service.ended_hard")


class Seat:
    """The place of one daemon: its folder stays, whatever becomes of its processes."""

    def __init__(self, folder: Path, dsn: str, store: Path, clock: float) -> None:
        """Make the folder, with the shared store in it."""
        self.rig = Rig(folder, dsn, **SECTIONS)
        self.clock = clock
        self.rig.state.mkdir()
        (self.rig.state / "store").symlink_to(store)
        self.daemon: Daemon | None = None
        self.suspended = False

    def start(self) -> None:
        """Start a process."""
        about = (self.rig.file, self.rig.folder.parent, self.clock, os.getpid())
        self.daemon = self.rig.start("tests.torture.service", *map(str, about), wait=False)

    @property
    def lives(self) -> bool:
        """True while its process is there."""
        return self.daemon is not None and self.daemon.process.poll() is None


class Fleet:
    """All seats; nobody else starts or ends a daemon."""

    def __init__(self, folder: Path, dsn: str, store: Path, counts: Counter[str]) -> None:
        """Make the seats, one for each clock."""
        self.seats = []
        for number, clock in enumerate(CLOCKS):
            (folder / f"seat-{number}").mkdir()
            self.seats.append(Seat(folder / f"seat-{number}", dsn, store, clock))
        self.faults: list[str] = []
        self._counts = counts
        self._lock = threading.Lock()

    def tend(self) -> None:
        """Start a process in each seat that has none; see how the last one ended."""
        with self._lock:
            for seat in self.seats:
                if not seat.lives:
                    self._bury(seat)
                    seat.start()

    def kill(self, seat: Seat) -> None:
        """Kill -9."""
        if seat.daemon is not None and seat.lives:
            seat.daemon.process.kill()
            seat.daemon.process.wait()
            self._counts["kill -9"] += 1

    def suspend(self, seat: Seat, seconds: float) -> None:
        """SIGSTOP, and SIGCONT so much later, while everything else goes on."""
        daemon = seat.daemon
        if daemon is None or not seat.lives or seat.suspended:
            return
        seat.suspended = True
        daemon.signal(signal.SIGSTOP)

        def resume() -> None:
            if daemon.process.poll() is None:
                daemon.signal(signal.SIGCONT)
                self._counts["zombies"] += 1
            seat.suspended = False

        threading.Timer(seconds, resume).start()

    def stop(self, seat: Seat) -> None:
        """SIGTERM, and wait for its end."""
        if seat.daemon is not None and seat.lives and not seat.suspended:
            seat.daemon.signal(signal.SIGTERM)
            seat.daemon.process.wait(60)
            self._counts["orderly stops"] += 1

    def all_serving(self, seconds: float) -> None:
        """Wait until every seat has a daemon that serves."""
        until = time.monotonic() + seconds
        while not all(seat.lives and not seat.suspended and self._answers(seat) for seat in self.seats):
            assert not self.faults, self.faults[0]
            assert time.monotonic() < until, "a daemon does not come up"
            self.tend()
            time.sleep(0.1)

    def end(self) -> None:
        """Stop all in order, and see how each ended."""
        for seat in self.seats:
            self.stop(seat)
            self._bury(seat)

    def kill_all(self) -> None:
        """Leave nobody behind."""
        for seat in self.seats:
            seat.rig.end()

    def _answers(self, seat: Seat) -> bool:
        try:
            assert seat.daemon is not None
            with seat.daemon.client() as client:
                return client.get("/readyz").is_success
        except httpx.HTTPError:
            return False

    def _bury(self, seat: Seat) -> None:
        """Take note of how a process ended, and of what its log says of claims."""
        daemon, seat.daemon = seat.daemon, None
        if daemon is None:
            return
        said = daemon.log_file.read_text("utf-8", "replace")
        for event in TOLD:
            self._counts[event] += said.count(f'"event":"{event}"') + said.count(f'"event": "{event}"')
        code = daemon.process.returncode  # a stop may come before Python has heard of signals
        if code == UNAVAILABLE:
            self._counts["found no database"] += 1
        elif code not in (0, -signal.SIGKILL, -signal.SIGTERM) and "service.ended_hard" not in said:
            self.faults.append(f"a daemon crashed ({code}): {said[-3000:]}")
        daemon.log_file.unlink()
        seat.rig.daemons.remove(daemon)

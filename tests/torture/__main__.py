"""Torture for a while: `python -m tests.torture FOLDER SECONDS SEED` prints a table, then every fault.

FOLDER is empty and short of name, as sockets live in it. Where mounting is allowed, the store is a small disk
that can be filled.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final

import trio

from tests.torture.fleet import Fleet
from tests.torture.harm import Harm
from tests.torture.judgement import CALM_STATEMENT_SECONDS, judged
from tests.torture.people import Owners, Senders, while_nobody_works
from tests.torture.server import Server
from tests.torture.terms import LEASE, POLL

DISK_BYTES: Final = 2**30  # a quarter of it is the store's reserve, the rest has room for an hour's records
OWN_MOUNTS: Final = "RUBEZH_TORTURE_OWN_MOUNTS"
STUCK_AFTER: Final = LEASE + 2 * POLL
QUEUE_SECONDS: Final = 6.0  # what the queue itself takes when all is calm, on a busy machine
DONE_A_SECOND: Final = 5.0  # at the very least

OPEN: Final = """SELECT count(*) AS n FROM records
    WHERE milestone <> 'done' AND stop_code IS NULL AND deleted_at IS NULL"""


class Torture:
    """One run."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Have everything there, and nothing going on."""
        self.counts: Counter[str] = Counter()
        self.folder, self.store = folder, folder / "store"
        self.store.mkdir()
        self._own_disk()
        self.dice = random.Random(seed)  # noqa: S311 - to be thrown the same again
        self.server = Server(folder / "cluster")
        self.fleet = Fleet(folder, self.server.dsn, self.store, self.counts)
        self.harm = Harm(self.fleet, self.server, self.store, self.dice, self.counts)

    def _own_disk(self) -> None:
        """Put the store on a small disk that nobody else sees, where that is possible."""
        if OWN_MOUNTS in os.environ:
            options = f"size={DISK_BYTES},mode=0755"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "torture", str(self.store)], check=True)

    def run(self, seconds: float) -> list[str]:
        """Torture, then have calm, then judge."""
        self.fleet.tend()
        self.fleet.all_serving(60)
        senders = Senders(self.fleet, self.fleet.seats[0].rig.account(), self.counts)
        owners = Owners(senders, self.server.dsn, self.counts)
        watching = threading.Thread(target=self._watch_queue, args=(senders,), daemon=True)
        for one in (senders, owners, watching):
            one.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.fleet.faults:
            self.harm.one()
            self.fleet.tend()
            time.sleep(self.dice.uniform(0.4, 1.6))
        (self.folder / "calm").touch()
        self.fleet.all_serving(60)
        senders.end()
        owners.join()
        watching.join()
        said = self._come_to_rest("left by the faults", STUCK_AFTER + QUEUE_SECONDS)
        self.fleet.end()
        [calm] = self.server.ask("SELECT clock_timestamp() AS since")
        waiting = trio.run(while_nobody_works, self.server.dsn, self.store, senders)
        self.counts["waiting for the daemons in the end"] = waiting
        time.sleep(2 * CALM_STATEMENT_SECONDS)
        self.fleet.tend()
        self.fleet.all_serving(60)
        said += self._come_to_rest("lifted or new", STUCK_AFTER + QUEUE_SECONDS + waiting / DONE_A_SECOND)
        self.fleet.end()
        said += self.fleet.faults
        said += judged(self.server, self.store, senders.sent, calm["since"], self.counts)
        self.server.end()
        return said

    def _watch_queue(self, senders: Senders) -> None:
        while not senders.over.is_set():
            senders.queue = self.server.ask(OPEN)[0]["n"]
            time.sleep(0.2)

    def _come_to_rest(self, what: str, seconds: float) -> list[str]:
        """Wait until nothing is open; say so when it takes longer than it may."""
        began = time.monotonic()
        while left := self.server.ask(OPEN)[0]["n"]:
            if time.monotonic() - began > seconds:
                return [f"{left} records {what} were not done within {seconds:.1f} s of calm"]
            time.sleep(0.05)
        self.counts[f"ms until nothing was open ({what})"] = round((time.monotonic() - began) * 1000)
        return []


def main() -> None:
    """Run, print the table and the faults; exit code 1 when there is one."""
    apart = ["unshare", "--mount"]
    if OWN_MOUNTS not in os.environ and subprocess.run([*apart, "true"], check=False).returncode == 0:
        words = [*apart, sys.executable, "-m", "tests.torture", *sys.argv[1:]]
        os.execvpe(words[0], words, os.environ | {OWN_MOUNTS: "1"})  # noqa: S606 - words of our own
    folder, seconds, seed = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    torture = Torture(folder, seed)
    try:
        said = torture.run(seconds)
    finally:
        torture.fleet.kill_all()
    width = max(map(len, torture.counts))
    for name, number in sorted(torture.counts.items()):
        sys.stdout.write(f"{name:<{width}}  {number:>8}\n")
    sys.stdout.write(json.dumps({"counts": torture.counts, "faults": said[:50]}) + "\n")
    sys.exit(bool(said))


if __name__ == "__main__":
    main()

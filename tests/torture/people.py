"""Those who send recordings, and those who stop, lift and delete them, whatever is going on."""

import random
import threading
import time
from collections import Counter
from pathlib import Path
from uuid import UUID

import httpx
import trio
from attrs import frozen

from storage import owner
from storage.accounts import find_account
from storage.database import open_database, open_loop
from storage.errors import RubezhError
from storage.mounting import mount_store
from storage.submissions import accept
from tests.builders import ask
from tests.making import a_submission
from tests.torture.fleet import Fleet

LONGEST_QUEUE = 80
CROWD = 60  # sent while nobody works: in what order are they taken?
CHANCE = random.Random()  # noqa: S311 - people are no secret


@frozen
class Sent:
    """A recording whose sender was told that it is accepted."""

    record_id: UUID
    text: str


class Senders:
    """Send recordings through whatever door is open, while the queue is not long."""

    def __init__(self, fleet: Fleet, token: str, counts: Counter[str]) -> None:
        """Begin with nothing sent."""
        self.sent: list[Sent] = []
        self.queue = 0  # set by whoever looks at the database
        self.over = threading.Event()
        self._fleet, self._token, self._counts = fleet, token, counts
        self._number = 0
        self._threads = [threading.Thread(target=self._send_all, daemon=True) for _ in range(4)]
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to send."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Send nothing more."""
        self.over.set()
        for thread in self._threads:
            thread.join()

    def _send_all(self) -> None:
        while not self.over.is_set():
            if self.queue >= LONGEST_QUEUE:
                time.sleep(0.02)
                continue
            with self._lock:
                self._number += 1
                self.queue += 1
                number = self._number
            self._send(number, CHANCE.choice((1, 1, 1, 2)))

    def _send(self, number: int, slices: int) -> None:
        daemon = CHANCE.choice(self._fleet.seats).daemon
        if daemon is None:
            return
        try:
            with daemon.client(self._token) as client:
                answer = client.post(
                    "/v1/records",
                    params={"filename": f"{number}.wav"},
                    content=f"record {number} {slices}".encode(),
                    timeout=8,
                )
        except httpx.HTTPError:
            self._counts["sends cut off"] += 1
            time.sleep(0.02)
            return
        if answer.status_code == httpx.codes.CREATED:
            text = " ".join(f"{number}.{at}" for at in range(slices))
            self.sent.append(Sent(UUID(answer.json()["id"]), text))
        else:
            self._counts[f"sends answered {answer.status_code}"] += 1
            time.sleep(0.02)


class Owners:
    """Stop, lift, delete and undelete records at random."""

    def __init__(self, senders: Senders, dsn: str, counts: Counter[str]) -> None:
        """Begin when started."""
        self._senders, self._dsn, self._counts = senders, dsn, counts
        self._thread = threading.Thread(target=trio.run, args=(self._go_on,), daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end, which the senders' end brings."""
        self._thread.join()

    async def _go_on(self) -> None:
        async with open_loop():
            while not self._senders.over.is_set():
                try:
                    async with open_database(
                        self._dsn, pool_size=1, call_seconds=2, statement_seconds=1, listen=True
                    ) as database:
                        while not self._senders.over.is_set():
                            await trio.sleep(CHANCE.uniform(0.02, 0.3))
                            if self._senders.sent:
                                one = CHANCE.choice(self._senders.sent[-10:])
                                verb, name = CHANCE.choice(VERBS)
                                done = await verb(database, one.record_id, None, "a person")
                                self._counts[name] += done is owner.Verdict.DONE
                except RubezhError:  # away: a person tries again
                    await trio.sleep(0.1)


VERBS = (
    (owner.stop, "owners' stops"),
    (owner.stop, "owners' stops"),
    (owner.lift, "owners' lifts"),
    (owner.lift, "owners' lifts"),
    (owner.delete, "owners' deletions"),
    (owner.undelete, "owners' undeletions"),
    (owner.undelete, "owners' undeletions"),
)


async def while_nobody_works(dsn: str, folder: Path, senders: Senders) -> int:
    """Undelete and lift every record, and have a crowd of new ones accepted; return how many wait now."""
    waiting = CROWD
    async with (
        open_loop(),
        open_database(dsn, pool_size=1, call_seconds=10, statement_seconds=5, listen=True) as database,
    ):
        for row in await ask(database, "SELECT id FROM records WHERE deleted_at IS NOT NULL"):
            await owner.undelete(database, row["id"], None, "the end")
        for row in await ask(database, "SELECT id FROM records WHERE stop_code IS NOT NULL"):
            waiting += await owner.lift(database, row["id"], None, "the end") is owner.Verdict.DONE
        store = await mount_store(database, folder)
        account = await find_account(database, "anna")
        assert account is not None
        for number in range(CROWD):
            submission = await a_submission(store, account, f"record crowd{number} 2".encode())
            await accept(database, submission, lane="convert")
            senders.sent.append(Sent(submission.id, f"CROWD{number}.0 CROWD{number}.1"))
    return waiting

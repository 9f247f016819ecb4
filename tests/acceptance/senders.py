"""Senders that are not put off: each goes on with what it has begun until it is told that it is accepted."""

import hashlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import httpx
from attrs import define, field, frozen

from tests.acceptance.rig import Daemon

BLOCK = 16_384
PAUSE = 0.001  # between two blocks: a kill must find bodies that are under way
TUS = {"Tus-Resumable": "1.0.0"}
PART = {**TUS, "Content-Type": "application/offset+octet-stream"}


@frozen
class Work:
    """What a sender has in hand: some bytes, and what it knows them by."""

    content: bytes
    key: str
    at: list[str] = field(factory=list)  # of its resumable upload, once begun


@define
class Ledger:
    """What was promised: the SHA-256 of the bytes of every id that a sender was given."""

    promised: dict[UUID, str] = field(factory=dict)
    repeated: set[str] = field(factory=set)  # bytes whose sender comes again, so that they are there once
    _lock: threading.Lock = field(factory=threading.Lock)

    def note(self, record_id: str, content: bytes) -> None:
        """Keep a promise."""
        with self._lock:
            self.promised[UUID(record_id)] = hashlib.sha256(content).hexdigest()

    def expect_once(self, content: bytes) -> None:
        """Keep that these bytes are sent until they are accepted."""
        with self._lock:
            self.repeated.add(hashlib.sha256(content).hexdigest())


Attempt = Callable[[httpx.Client, Work], str | None]


@define
class Sender:
    """Sends one recording after the other in a thread of its own, each by `attempt`, which returns its id."""

    attempt: Attempt
    ledger: Ledger
    comes_again: bool
    in_hand: Work | None = None

    def run(self, daemon: Daemon, token: str, enough: threading.Event) -> None:
        """Send until the daemon is gone or it is enough; what is in hand stays there."""
        with daemon.client(token) as client:
            while not enough.is_set():
                if self.in_hand is None or not self.comes_again:
                    self._take_up()
                try:
                    self._try(client)
                except httpx.HTTPError:
                    if daemon.process.poll() is not None:
                        return

    def finish(self, daemon: Daemon, token: str) -> None:
        """Bring what is in hand to its end."""
        deadline = time.monotonic() + 60
        with daemon.client(token) as client:
            while self.comes_again and self.in_hand is not None:
                assert time.monotonic() < deadline, "a sender that comes again is never accepted"
                self._try(client)
                time.sleep(0.05)

    def _take_up(self) -> None:
        size = random.choice([1, 5_000, 300_000, 2_000_000])  # noqa: S311 - a size, no secret
        self.in_hand = Work(os.urandom(size + 16), f"key-{uuid4()}")
        if self.comes_again:
            self.ledger.expect_once(self.in_hand.content)

    def _try(self, client: httpx.Client) -> None:
        assert self.in_hand is not None
        record_id = self.attempt(client, self.in_hand)
        if record_id is not None:
            self.ledger.note(record_id, self.in_hand.content)
            self.in_hand = None


def blocks(content: bytes) -> Iterator[bytes]:
    """Send a body block by block, without saying how long it is."""
    for start in range(0, len(content), BLOCK):
        yield content[start : start + BLOCK]
        time.sleep(PAUSE)


def submit(client: httpx.Client, work: Work) -> str | None:
    """Send it as a plain body."""
    return _accepted(client.post("/v1/records", content=blocks(work.content)))


def submit_form(client: httpx.Client, work: Work) -> str | None:
    """Send it as a form."""
    return _accepted(client.post("/v1/records", files={"file": ("talk.wav", work.content)}))


def submit_under_key(client: httpx.Client, work: Work) -> str | None:
    """Send it under its key."""
    headers = {"Idempotency-Key": f'"{work.key}"'}
    return _accepted(client.post("/v1/records", headers=headers, content=blocks(work.content)))


def upload(client: httpx.Client, work: Work) -> str | None:
    """Go on with its resumable upload from where that is."""
    if not work.at:
        begun = client.post("/v1/uploads", headers={**TUS, "Upload-Length": str(len(work.content))})
        if begun.status_code != httpx.codes.CREATED:
            return None
        work.at.append(begun.headers["location"])
    told = client.head(work.at[0], headers=TUS)
    if told.status_code != httpx.codes.OK:
        return None
    if "rubezh-record" in told.headers:
        return str(told.headers["rubezh-record"])
    offset = int(told.headers["upload-offset"])
    part = work.content[offset : offset + 700_000]
    headers = {**PART, "Upload-Offset": str(offset)}
    done = client.patch(work.at[0], headers=headers, content=blocks(part))
    record_id: str | None = done.headers.get("rubezh-record")
    return record_id


def senders(ledger: Ledger) -> list[Sender]:
    """Return senders of every kind."""
    kinds: list[tuple[Attempt, bool]] = [
        (submit, False),
        (submit_form, False),
        (submit_under_key, True),
        (submit_under_key, True),
        (upload, True),
        (upload, True),
    ]
    return [Sender(attempt=attempt, ledger=ledger, comes_again=again) for attempt, again in kinds]


def _accepted(answer: httpx.Response) -> str | None:
    return str(answer.json()["id"]) if answer.status_code == httpx.codes.CREATED else None

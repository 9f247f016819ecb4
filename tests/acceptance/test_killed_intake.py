"""Kill -9 at random moments of submissions and uploads: what was promised is there, and nothing in part."""

import hashlib
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from tests.acceptance.rig import Daemon, Rig, eventually
from tests.acceptance.senders import Ledger, Sender, senders

LONGEST_LIFE = 0.9  # seconds of traffic before a kill
DAYS = 3 * 86_400.0


@pytest.mark.filterwarnings(
    # The client leaves a socket unclosed that nobody listened on.
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.deep)])
def test_s_i10_what_was_promised_survives_every_kill(
    make_rig: Callable[..., Rig], dsn: str, kills: int
) -> None:
    """Every id ever returned has its bytes, what is sent again is there once, strays go and nothing else."""
    rig = make_rig(dsn, intake={"account_uploads": 32})
    token = rig.account()
    ledger = Ledger()
    sending = senders(ledger)
    for _ in range(kills):
        daemon = rig.start(*rig.odd("endless"))
        suffer(daemon, token, sending, random.uniform(0.02, LONGEST_LIFE))  # noqa: S311 - a moment, no secret
        check_promises(rig, ledger)
    daemon = rig.start(*rig.odd("endless"))
    # Let the minute pass in which keys are still held by the dead.
    rig.ask("UPDATE submission_keys SET lease_until = clock_timestamp() - interval '1 s'")
    for sender in sending:
        sender.finish(daemon, token)
    daemon.stop()
    check_promises(rig, ledger)
    sent_once = Counter(row["sha"] for row in all_records(rig))
    assert {sha: sent_once[sha] for sha in ledger.repeated} == dict.fromkeys(ledger.repeated, 1)
    check_sweeping(rig, ledger)


def suffer(daemon: Daemon, token: str, sending: list[Sender], seconds: float) -> None:
    """Let the daemon be sent to for so long, then kill it."""
    enough = threading.Event()
    threads = [threading.Thread(target=sender.run, args=(daemon, token, enough)) for sender in sending]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    daemon.kill()
    enough.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def all_records(rig: Rig) -> list[dict[str, object]]:
    """Return every record that anybody can see, with what its bytes should be."""
    return rig.ask("SELECT id, source_path, source_bytes, encode(source_sha256, 'hex') AS sha FROM records")


def check_promises(rig: Rig, ledger: Ledger) -> None:
    """Every id that was given is a record; of every record the bytes are there, whole."""
    rows = {row["id"]: row for row in all_records(rig)}
    assert {record_id: rows[record_id]["sha"] for record_id in ledger.promised if record_id in rows} == (
        ledger.promised
    )
    for row in rows.values():
        content = (rig.state / "store" / str(row["source_path"])).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (row["source_bytes"], row["sha"])


def check_sweeping(rig: Rig, ledger: Ledger) -> None:
    """Days later what no row knows is in quarantine or gone, and every record is where it was."""
    store = rig.state / "store"
    known = {row["id"] for row in all_records(rig)}
    strays = ids_in(store / "records") - known
    rig.ask("UPDATE uploads SET expires_at = clock_timestamp() - interval '1 minute'")
    for path in (store / "records", store / "incoming", store / "uploads"):
        for each in path.iterdir():
            long_ago = each.stat().st_mtime - DAYS
            os.utime(each, (long_ago, long_ago))
    daemon = rig.start(*rig.odd("endless"))
    swept = ("incoming", "uploads")
    eventually(lambda: not any(ids_in(store / name) for name in swept), "what was unfinished is gone")
    eventually(lambda: ids_in(store / "quarantine") == strays, "strays are put aside")
    daemon.stop()
    assert ids_in(store / "records") == known
    check_promises(rig, ledger)


def ids_in(folder: Path) -> set[UUID]:
    """Return what is in a folder of the store."""
    return {UUID(path.name) for path in folder.iterdir()}

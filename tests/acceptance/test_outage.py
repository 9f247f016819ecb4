"""PostgreSQL goes away for long and comes back: two lines in the log, no memory, no record harmed."""

import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from tests.acceptance.rig import Daemon, Rig, eventually
from tests.torture.server import Server

AT_WORK_AGAIN_SECONDS = 5.0
GROWTH_KIB = 4096  # what an allocator may keep of an hour's or a minute's work alike


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(15, id="a quarter of a minute"),
        pytest.param(600, id="ten minutes", marks=[pytest.mark.deep, pytest.mark.timeout(900)]),
    ],
)
def test_s_o14_an_outage_of_the_database_is_two_lines_and_harms_no_record(
    folder: Path, make_rig: Callable[..., Rig], seconds: float
) -> None:
    """Work stands still meanwhile and goes on within seconds; none is stopped by it; no memory grows."""
    server = Server(folder / "cluster")
    try:
        rig = make_rig(server.dsn, work={"workers": 3})
        daemon = rig.start(*rig.odd("short"))
        token = rig.account()
        waiting = [daemon.submit(token, b"anything") for _ in range(4)]
        eventually(lambda: any(rig.record(one)["claim_token"] for one in waiting), "a record is held")

        server.end()
        daemon.wait_for("database.away")
        time.sleep(seconds / 3)
        before = resident(daemon)
        assert_told(daemon, token, waiting[0])
        time.sleep(seconds * 2 / 3)
        after = resident(daemon)
        server.start()
        began = time.monotonic()
        daemon.wait_for("database.returned", AT_WORK_AGAIN_SECONDS)
        eventually(lambda: any(is_converted(rig, one) for one in waiting), "work goes on")
        assert time.monotonic() - began < AT_WORK_AGAIN_SECONDS + 1.0  # and the work itself is a second

        eventually(lambda: all(is_converted(rig, one) for one in waiting), "all are converted")
        assert after - before < GROWTH_KIB
        [away], [returned] = daemon.entries("database.away"), daemon.entries("database.returned")
        log = daemon.log
        meanwhile = [
            entry for entry in log[log.index(away) + 1 : log.index(returned)] if entry["level"] != "debug"
        ]
        assert meanwhile == []
        daemon.stop()
    finally:
        server.end()


def is_converted(rig: Rig, record_id: UUID) -> bool:
    """Tell whether the odd stage came to its outcome; nothing may have been stopped before that."""
    kinds = [event["kind"] for event in rig.events(record_id)]
    before = kinds[: kinds.index("reached")] if "reached" in kinds else kinds
    assert "stopped" not in before
    return "reached" in kinds


def assert_told(daemon: Daemon, token: str, record_id: UUID) -> None:
    """Whoever asks meanwhile hears that it is not for them to mend, and when to ask again."""
    with daemon.client(token) as client:
        answer = client.get(f"/v1/records/{record_id}")
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert int(answer.headers["Retry-After"]) > 0


def resident(daemon: Daemon) -> int:
    """Return the resident memory of the daemon's main process in KiB."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text("ascii")
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1])

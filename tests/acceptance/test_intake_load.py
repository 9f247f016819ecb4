"""What the intake costs: memory while large recordings come, and the time of a poll beside many slow ones."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import define

from tests.acceptance.rig import Daemon, Rig
from tests.processes import CHECKOUT

MB = 2**20
BLOCK = bytes(MB)
BOUNDARY = "----rubezh"
SLOW = 200


@define
class Peak:
    """How far a process's memory grew above what it was at first, in MB."""

    grown: float = 0.0


@contextmanager
def watched(daemon: Daemon) -> Iterator[Peak]:
    """Watch a process's memory for as long as the block lasts."""
    before, over, peak = resident(daemon), threading.Event(), Peak()

    def watch() -> None:
        while not over.wait(0.01):
            peak.grown = max(peak.grown, resident(daemon) - before)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def resident(daemon: Daemon) -> float:
    """Return the memory a process has, in MB."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024


def zeros(megabytes: int) -> Iterator[bytes]:
    """Send so many megabytes, never holding more than one."""
    for _ in range(megabytes):
        yield BLOCK


def form(megabytes: int) -> Iterator[bytes]:
    """Send the same as a form."""
    yield f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'.encode()
    yield from zeros(megabytes)
    yield f"\r\n--{BOUNDARY}--\r\n".encode()


@pytest.mark.parametrize(
    ("megabytes", "most"), [(160, 40.0), pytest.param(2048, 60.0, marks=pytest.mark.deep)]
)
def test_s_i12_a_large_recording_is_never_held_in_memory(
    make_rig: Callable[..., Rig], dsn: str, megabytes: int, most: float
) -> None:
    """As a plain body, as a form and by parts: the service grows by little, whatever the size."""
    rig = make_rig(dsn)
    daemon = rig.start(*rig.odd("endless"))
    token = rig.account()
    daemon.submit(token, BLOCK)
    tus = {"Tus-Resumable": "1.0.0"}
    with daemon.client(token) as client:
        client.timeout = 600
        with watched(daemon) as plain:
            assert client.post("/v1/records", content=zeros(megabytes)).status_code == 201
        kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        with watched(daemon) as as_form:
            assert client.post("/v1/records", content=form(megabytes), headers=kind).status_code == 201
        with watched(daemon) as by_parts:
            begun = client.post("/v1/uploads", headers={**tus, "Upload-Length": str(megabytes * MB)})
            part = {**tus, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
            done = client.patch(begun.headers["location"], headers=part, content=zeros(megabytes))
            assert done.headers["upload-offset"] == str(megabytes * MB)
    grown = {"plain": plain.grown, "form": as_form.grown, "parts": by_parts.grown}
    assert max(grown.values()) < most, grown
    assert len(rig.ask("SELECT 1 FROM records WHERE source_bytes = %(all)s", all=megabytes * MB)) == 3
    daemon.stop()


@pytest.mark.deep
def test_s_i13_slow_senders_leave_the_poll_quick(make_rig: Callable[..., Rig], dsn: str) -> None:
    """With 200 of them being received, 99 of 100 polls take at most three times what they take without."""
    rig = make_rig(dsn, intake={"open_uploads": SLOW + 8, "account_uploads": SLOW + 8})
    daemon = rig.start(*rig.odd("endless"))
    token = rig.account()
    record_id = daemon.submit(token, b"x")

    def slowest_of_a_hundred() -> float:
        times = []
        with daemon.client(token) as client:
            for _ in range(1000):
                began = time.perf_counter()
                assert client.get(f"/v1/records/{record_id}").status_code == 200
                times.append(time.perf_counter() - began)
        return sorted(times)[990]

    before = slowest_of_a_hundred()
    command = [sys.executable, "-m", "tests.acceptance.slow_senders", str(rig.state / "rubezh.sock"), token]
    with subprocess.Popen([*command, str(SLOW)], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as sending:
        assert sending.stdout is not None
        assert sending.stdout.readline() == "ready\n"
        assert len(list((rig.state / "store" / "incoming").iterdir())) == SLOW
        beside = slowest_of_a_hundred()
        sending.kill()
    idle = max(before, slowest_of_a_hundred())
    assert beside <= 3 * idle, f"{beside * 1000:.1f} ms beside them, {idle * 1000:.1f} ms without"
    daemon.stop()

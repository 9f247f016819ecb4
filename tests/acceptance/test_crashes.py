"""What takes the process away: counted, survived, and never without a trace."""

import signal
import subprocess
import time
from collections.abc import Callable
from uuid import UUID

from tests.acceptance.conftest import put_model
from tests.acceptance.rig import Rig, eventually
from tests.processes import is_alive

SLICES = {"shortest_slice_seconds": 6.0, "longest_slice_seconds": 15.0}


def test_s_d2_a_stage_that_takes_the_daemon_with_it_ends_stopped(
    make_rig: Callable[..., Rig], dsn: str
) -> None:
    """The claim is what counts: with limit 2 the daemon dies twice, and the third one stops the record."""
    rig = make_rig(
        dsn,
        work={"failures_limit": 2},
        convert={"lease_seconds": 1.5},
        whisper={"lease_seconds": 1.5},
        database={"statement_seconds": 0.7},
    )
    quiet = rig.start(*rig.odd("endless"))
    token = rig.account()
    record_id = quiet.submit(token, b"anything")
    quiet.stop()
    for _ in range(2):
        daemon = rig.start(*rig.odd("deadly"), wait=False)
        assert daemon.process.wait(60) == -signal.SIGKILL
    last = rig.start(*rig.odd("deadly"))
    eventually(lambda: rig.record(record_id)["stop_code"], "the record is stopped")
    row = rig.record(record_id)
    assert (row["stop_code"], row["failures"], row["milestone"]) == ("attempts_exhausted", 3, "created")
    assert "the process died" in row["stop_reason"]
    assert last.poll(token, record_id)["stopped"] is True
    last.stop()


def test_s_r5_a_kill_in_mid_slice_costs_at_most_that_slice(
    make_rig: Callable[..., Rig], dsn: str, long_speech: bytes
) -> None:
    """Killed twice, a record ends with the text of an uninterrupted one; no slice is settled twice."""
    rig = make_rig(dsn, whisper=SLICES)
    put_model(rig)
    daemon = rig.start()
    token = rig.account()
    plain = daemon.submit(token, long_speech, language="en")
    eventually(lambda: rig.record(plain)["milestone"] == "done", "the uninterrupted record is done")
    killed = daemon.submit(token, long_speech, language="en")
    for slices in (0, 1):
        wait_for_slice(rig, killed, slices)
        daemon.kill()
        daemon = rig.start()
    eventually(lambda: rig.record(killed)["milestone"] == "done", "the killed record is done", 120)
    assert rig.record(killed)["recognised_text"] == rig.record(plain)["recognised_text"]
    assert segments(rig, killed) == segments(rig, plain)
    history = [(event["kind"], event["milestone"]) for event in rig.events(killed)]
    claims = history.count(("claimed", "transcribe"))
    settles = history.count(("deferred", "transcribe")) + history.count(("reached", "done"))
    assert settles == len({segment["slice"] for segment in segments(rig, plain)})
    assert claims == settles + 2
    daemon.stop()


def test_s_d3_a_stop_in_mid_slice_costs_nothing_but_that_slice(
    make_rig: Callable[..., Rig], dsn: str, long_speech: bytes
) -> None:
    """SIGTERM while the model works: given back, uncounted, ready at once; in the end the same text."""
    rig = make_rig(dsn, whisper=SLICES)
    put_model(rig)
    daemon = rig.start()
    token = rig.account()
    plain = daemon.submit(token, long_speech, language="en")
    eventually(lambda: rig.record(plain)["milestone"] == "done", "the uninterrupted record is done")
    record_id = daemon.submit(token, long_speech, language="en")
    wait_for_slice(rig, record_id, 1)
    took = daemon.stop()
    row = rig.record(record_id)
    assert (row["failures"], row["stop_code"], row["claim_token"], row["wake_at"]) == (0, None, None, None)
    assert took < 5.5
    again = rig.start()
    eventually(lambda: rig.record(record_id)["milestone"] == "done", "the record is done", 120)
    assert rig.record(record_id)["recognised_text"] == rig.record(plain)["recognised_text"]
    again.stop()


def test_s_o3_a_killed_daemon_leaves_no_process_and_the_next_start_works(
    make_rig: Callable[..., Rig], long_speech: bytes
) -> None:
    """Kill -9 with PostgreSQL embedded and the recogniser at work: all end, and the record goes on."""
    rig = make_rig(None, whisper=SLICES)
    put_model(rig)
    daemon = rig.start()
    record_id = daemon.submit(rig.account(), long_speech, language="en")
    wait_for_slice(rig, record_id, 0)
    family = descendants(daemon.process.pid)
    assert len(family) > 3  # PostgreSQL with its helpers, and the recogniser
    daemon.kill()
    eventually(lambda: not any(map(is_alive, family)), "everybody has left")
    again = rig.start()
    eventually(lambda: rig.record(record_id)["milestone"] == "done", "the record is done", 120)
    again.stop()
    assert not any(map(is_alive, descendants(again.process.pid)))


def test_s_o4_another_daemon_finishes_what_a_killed_one_held(make_rig: Callable[..., Rig], dsn: str) -> None:
    """Two daemons share a database and a store; when one is killed, the other takes over after the lease."""
    one = make_rig(dsn, name="one")
    first = one.start(*one.odd("endless"))
    token = one.account()
    two = make_rig(dsn, name="two")
    two.state.mkdir()
    (two.state / "store").symlink_to(one.state / "store")
    record_id = first.submit(token, b"anything")
    eventually(lambda: one.record(record_id)["claim_token"], "the first one holds the record")
    second = two.start(*two.odd("short"))
    time.sleep(4.0)  # longer than a lease: the first one renews it
    assert [event["kind"] for event in one.events(record_id)] == ["accepted", "claimed"]
    first.kill()
    eventually(lambda: one.record(record_id)["milestone"] != "created", "the second one has done the work")
    by = [event["by"] for event in one.events(record_id) if event["kind"] == "claimed"]
    assert by[0] != by[1]
    second.stop()


def test_s_o5_a_second_daemon_on_one_state_folder_is_refused(rig: Rig) -> None:
    """It is told who holds the folder, in a sentence, and may be tried again; the first one goes on."""
    daemon = rig.start(*rig.odd("endless"))
    refused = rig.rubezh("serve")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert f"in use by process {daemon.process.pid}" in refused.stderr
    daemon.stop()


def wait_for_slice(rig: Rig, record_id: UUID, settled: int) -> None:
    """Wait until so many slices are saved and the recogniser is in the middle of the next one."""

    def in_the_middle() -> bool:
        row = rig.record(record_id)
        done = [event for event in rig.events(record_id) if event["kind"] == "deferred"]
        return row["milestone"] == "transcribe" and len(done) == settled and row["claim_token"] is not None

    eventually(in_the_middle, f"slice {settled} is being recognised")
    time.sleep(0.3)  # into the model's work: nothing outside shows how far it is


def segments(rig: Rig, record_id: UUID) -> list[dict[str, object]]:
    """Return a record's segments, in order."""
    return rig.ask(
        "SELECT slice, number, start_seconds, end_seconds, text FROM segments"
        " WHERE record_id = %(id)s ORDER BY slice, number",
        id=record_id,
    )


def descendants(pid: int) -> list[int]:
    """Return all processes below one, whatever sessions they have made."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout.split()
    pairs = list(zip(map(int, listed[::2]), map(int, listed[1::2]), strict=True))
    found, new = [], [pid]
    while new:
        new = [child for child, parent in pairs if parent in new]
        found += new
    return found

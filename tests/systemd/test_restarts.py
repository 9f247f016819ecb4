"""Restarts: nobody who calls is refused, and no record pays for them."""

import json
import time

import pytest

from tests.systemd.house import SOCKET, STATE, UNIT, House, until

pytestmark = pytest.mark.root

QUICK = {"renew_seconds": 0.5, "grace_seconds": 0.2, "exit_seconds": 3.0, "first_retry_seconds": 0.0}
SHORT_LEASE = {"lease_seconds": 3.0}
SHORT_STATEMENT = {"statement_seconds": 1.0, "call_seconds": 2.0}


def test_s_o30_ten_restarts_refuse_nobody(house: House) -> None:
    """While it is restarted over and over, every poll on both of its sockets gets its answer."""
    house.settle_in(work={"grace_seconds": 0.0}, whisper={"model": "none"})
    house.start()
    token = house.token("restarts")
    record = house.submit(token)
    with house.machine.running(*house.python("tests.systemd.callers", "poll", token, record)) as callers:
        for _ in range(10):
            house.machine.run("systemctl", "restart", UNIT)
        told, _ = callers.communicate(timeout=60)
    counted = json.loads(told)["counted"]
    assert set(counted) == {"unix 200", "tcp 200"}, told
    assert min(counted.values()) > 10
    assert house.restarts() == 0
    assert house.show("ActiveState") == "active"


def test_s_o30_whoever_comes_while_it_is_down_is_answered_once_it_is_up(house: House) -> None:
    """A connection to the sockets of a service that is not running starts it, and waits."""
    house.settle_in(whisper={"model": "none"})
    house.start()
    token = house.token("early")
    house.stop()
    assert house.show("ActiveState") == "inactive"
    assert house.submit(token)
    assert house.show("ActiveState") == "active"


def test_an_upload_across_a_restart_fails_cleanly_and_can_be_made_again(house: House) -> None:
    """Either the sender has the id and the record is there, or neither is; and the next try is taken."""
    house.settle_in(work={"grace_seconds": 0.0}, whisper={"model": "none"})
    house.start()
    token = house.token("uploads")
    with house.machine.running(*house.python("tests.systemd.callers", "upload", token, "30")) as sender:
        until(20, lambda: house.machine.run("ls", f"{STATE}/store/incoming"), "the upload is under way")
        house.machine.run("systemctl", "restart", UNIT)
        told = json.loads(sender.communicate(timeout=60)[0])
    assert told["status"] in (0, 503), "a sender who was cut off has no id"
    assert house.sql("SELECT count(*) FROM records") == ["0"]
    assert house.submit(token)


def test_a_question_that_waits_across_a_restart_is_answered(house: House) -> None:
    """Whoever waits for news of a record gets what is known by then, and asks the next run."""
    house.settle_in(work={"grace_seconds": 0.0}, whisper={"model": "none"})
    house.start()
    token = house.token("waits")
    record = house.submit(token)
    until(30, lambda: house.record(record, "stopped_at IS NULL") == "f", "nothing is left to change")
    asking = house.python("tests.systemd.callers", "wait", token, record)
    with house.machine.running(*asking) as caller:
        until(20, lambda: "waits" in (caller.stdout.readline() if caller.stdout else ""), "it asks")
        house.machine.run("systemctl", "restart", UNIT)
        told = json.loads(caller.communicate(timeout=60)[0])
    assert told["status"] == 304, "nothing is new"
    assert told["seconds"] < 25


def test_s_d3_five_restarts_during_one_slice_change_no_count(house: House) -> None:
    """The stage is cut off each time, and its record is as ready as before; so it is after a stop."""
    house.odd("endless", work=QUICK)
    house.start()
    record = house.submit(house.token("slices"))
    for _ in range(5):
        until(20, lambda: house.held(record), "the stage is at work")
        assert house.record(record, "failures") == "1", "the claim that is running"
        house.machine.run("systemctl", "restart", UNIT)
    until(20, lambda: house.held(record), "the stage is at work")
    house.stop()
    assert house.show("Result") == "success"
    assert house.events(record) == ["accepted", *["claimed", "given_back"] * 6]
    assert house.record(record, "failures") == "0"
    assert house.record(record, "stopped_at IS NULL AND claim_token IS NULL") == "t"


def test_s_d2_a_record_that_kills_the_daemon_ends_stopped(house: House) -> None:
    """It is started again each time, until the record's failures have run out; then it lives."""
    house.odd(
        "deadly",
        "RestartSec=100ms",
        work={**QUICK, "failures_limit": 2},
        convert=SHORT_LEASE,
        database=SHORT_STATEMENT,
    )
    house.start()
    house.hand_in(house.token("deaths"))
    record = house.newest_record()
    until(60, lambda: house.record(record, "stopped_at IS NOT NULL") == "t", "the record is stopped")
    assert "the process died" in house.record(record, "stop_reason")
    assert house.restarts() == 2
    time.sleep(0.5)
    assert house.show("ActiveState") == "active"


def test_a_killed_daemon_keeps_its_sockets(house: House) -> None:
    """After a kill -9, who comes in the seconds until it is back waits for them, and is answered."""
    house.settle_in("RestartSec=500ms", whisper={"model": "none"})
    house.start()
    token = house.token("kills")
    before = house.show("MainPID")
    house.machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", UNIT)
    assert house.submit(token)
    assert house.restarts() == 1
    assert house.show("MainPID") not in (before, "0")


def test_a_service_that_cannot_run_does_not_start_for_ever_for_whoever_waits(house: House) -> None:
    """A wrong setting ends each start at once; after some, callers are refused instead of kept waiting."""
    limit = "/run/systemd/system/rubezh.socket.d/quick.conf"
    house.settle_in(work={"worker": 3})
    house.machine.write(limit, "[Socket]\nTriggerLimitBurst=3\n")
    house.machine.run("sh", "-euc", f"systemctl daemon-reload; systemctl start {SOCKET}")
    with house.machine.running(*house.python("tests.systemd.callers", "poll", "rbz_x", "x")):
        until(30, lambda: house.machine.show(SOCKET, "Result") == {"Result": "trigger-limit-hit"})
    assert house.show("ExecMainStatus") == "2"
    house.machine.run("rm", limit)

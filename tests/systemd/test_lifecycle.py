"""Starting, reloading and stopping, beside the machine's own PostgreSQL."""

import time

import pytest

from daemon.stop import POSTGRES_SECONDS
from tests.systemd.house import SETTINGS, STATE, UNIT, House, until

pytestmark = pytest.mark.root


def test_s_o35_a_long_migration_is_waited_for_and_ready_means_ready(house: House) -> None:
    """`systemctl start` returns when it serves, however late: the daemon asks for more time."""
    house.settle_in("TimeoutStartSec=5s", whisper={"model": "none"})
    with house.migrations_held(8.0):
        began = time.monotonic()
        house.start()
        assert time.monotonic() - began > 6
    assert (house.restarts(), house.show("ActiveState")) == (0, "active")
    assert house.submit(house.token("after the start"))
    assert house.sql("SELECT current_user") == ["rubezh"]


def test_a_stop_ends_a_start_that_is_not_over(house: House) -> None:
    """Nobody waits for a migration that is not wanted any more; it is rolled back."""
    house.settle_in(whisper={"model": "none"})
    with house.migrations_held(30.0):
        house.machine.run("systemctl", "start", "--no-block", UNIT)
        until(20, lambda: "schema" in house.show("StatusText"), "it waits for the migrations")
        began = time.monotonic()
        house.stop()
        assert time.monotonic() - began < 10
    assert house.show("Result") == "success"


def test_s_o32_a_reload_changes_what_can_change_or_nothing(house: House) -> None:
    """It waits for its effect; what needs a restart, or is wrong, makes it fail, with the reason told."""
    house.settle_in(work={"failures_limit": 5}, whisper={"model": "none"})
    house.start()
    process = house.show("MainPID")
    house.settle_in(work={"failures_limit": 7}, whisper={"model": "none"})
    house.machine.run("systemctl", "reload", UNIT)
    assert house.said("settings.adopted")[-1]["RUBEZH_CHANGED"] == "['work.failures_limit']"
    for wrong, told in (
        ({"failures_limit": 8, "workers": 5}, "work.workers cannot change"),
        ({"x": 1}, "work.x"),
    ):
        house.settle_in(work=wrong, whisper={"model": "none"})
        with pytest.raises(AssertionError, match=r"Job for rubezh\.service failed"):
            house.machine.run("systemctl", "reload", UNIT)
        assert any(
            told in str(entry["MESSAGE"]) for entry in house.machine.journal("--unit", UNIT, "-n", "20")
        )
    assert (house.show("MainPID"), house.show("ActiveState")) == (process, "active")
    assert house.show("StatusText").endswith("waiting for recordings")


def test_what_it_does_is_in_the_status(house: House) -> None:
    """`systemctl status` shows what is at work, and what is missing."""
    house.odd("endless", work={"grace_seconds": 0.0}, whisper={"model": "none"})
    house.start()
    assert "whisper is closed: " in house.show("StatusText")
    assert house.show("StatusText").endswith("waiting for recordings")
    house.submit(house.token("status"))
    until(20, lambda: house.show("StatusText").endswith("at work: convert 1 of 1"))


def test_s_o33_a_secret_is_handed_over_as_a_credential(house: House) -> None:
    """The settings hold its name alone, and root's file is read by systemd for the service."""
    house.machine.write("/etc/credstore/rubezh.database", "host=/run/postgresql dbname=rubezh\n")
    house.machine.run("chmod", "600", "/etc/credstore/rubezh.database")
    text = f'state = "{STATE}"\n[database]\ndsn = {{ credential = "rubezh.database" }}\n'
    house.settle_in()
    house.machine.write(SETTINGS, text)
    house.start()
    assert house.show("ActiveState") == "active"
    assert house.sql(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'rubezh' AND state IS NOT NULL"
    ) == ["t"]
    house.machine.run("rm", "/etc/credstore/rubezh.database")


def test_s_o1_a_stop_keeps_to_its_time_while_postgresql_is_frozen(house: House) -> None:
    """What cannot be given back is owed; systemd need not kill, and the next start pays it."""
    house.odd("endless", work={"renew_seconds": 0.5, "grace_seconds": 0.5, "exit_seconds": 2.0})
    house.start()
    record = house.submit(house.token("frozen"))
    until(20, lambda: house.held(record))
    house.machine.run("systemctl", "kill", "--kill-whom=all", "--signal=STOP", "postgresql.service")
    try:
        began = time.monotonic()
        house.stop()
        took = time.monotonic() - began
    finally:
        house.machine.run("systemctl", "kill", "--kill-whom=all", "--signal=CONT", "postgresql.service")
    assert took < 60 - POSTGRES_SECONDS
    assert (house.show("Result"), house.restarts()) == ("exit-code", 0)
    repaid = len(house.said("give_back.repaid"))
    house.start()
    until(20, lambda: house.said("give_back.repaid")[repaid:], "what was owed is given back")
    assert house.events(record)[:3] == ["accepted", "claimed", "given_back"]
    assert house.record(record, "failures") in ("0", "1")

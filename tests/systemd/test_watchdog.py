"""The watchdog: whatever part of the daemon hangs, systemd starts it again."""

import pytest

from tests.systemd.house import UNIT, House, until

pytestmark = pytest.mark.root

QUICK = "WatchdogSec=3s\nTimeoutAbortSec=2s\nRestartSec=100ms"
WORK = {"renew_seconds": 0.5, "settle_seconds": 0.5}


@pytest.mark.parametrize(
    ("kind", "silent"),
    [("blocking", None), ("stuck", "worker"), ("careless", "keeper"), ("deaf", "bell")],
)
def test_s_o31_a_part_that_hangs_ends_in_a_restart(house: House, kind: str, silent: str | None) -> None:
    """A blocked event loop feeds nobody; over a stuck worker, keeper or bell the loop itself withholds."""
    house.odd(kind, QUICK, work=WORK)
    house.start()
    began = len(house.said("watchdog.withheld"))
    if silent in (None, "worker"):
        house.hand_in(house.token(kind))
    until(40, house.restarts, "systemd starts it again")
    told = house.machine.journal("--unit", UNIT, "_PID=1")
    assert any("Watchdog timeout" in str(entry["MESSAGE"]) for entry in told)
    withheld = house.said("watchdog.withheld")[began:]
    if silent is None:
        assert withheld == []
    else:
        assert silent in withheld[0]["RUBEZH_SILENT"]


def test_a_healthy_daemon_is_left_alone(house: House) -> None:
    """With every part heard from, a short watchdog never bites."""
    house.odd("none", QUICK, work=WORK)
    house.start()
    process = house.show("MainPID")
    record = house.submit(house.token("healthy"))
    until(40, lambda: house.record(record, "milestone") == "converted")
    house.machine.run("sleep", "4")
    assert (house.restarts(), house.show("MainPID")) == (0, process)

"""What the unit forbids, tried by the daemon itself from within."""

import json

import pytest

from tests.systemd.house import STATE, House, until
from tests.systemd.installed import CHECKOUT

pytestmark = pytest.mark.root

ALLOWED = {
    "write its state",
    "write to /tmp",
    "speak on Unix sockets",
    "lower a child's priority",
    "make new code in a child",
}
NETWORK = {"speak IPv4", "speak IPv6", "ask the kernel about networks"}


def came_of(house: House) -> dict[str, str]:
    """Have the daemon try everything, and return what came of it."""
    house.machine.write("/etc/credstore/another", "secret")
    house.machine.run("chmod", "600", "/etc/credstore/another")
    house.start()
    record = house.submit(house.token("probes"))
    until(30, lambda: house.record(record, "milestone") == "converted", "the probe is over")
    told: dict[str, str] = json.loads(house.machine.run("cat", f"{STATE}/probe.json"))
    return told


def test_s_o34_a_daemon_that_was_taken_over_can_do_next_to_nothing(house: House) -> None:
    """Of all that is tried, what it needs for its work is done, and everything else is refused."""
    house.odd("probing", whisper={"model": "none"})
    found = came_of(house)
    assert len(found) > 30
    assert {name for name, end in found.items() if end == "done"} == ALLOWED, found


def test_a_recogniser_elsewhere_is_reached_by_one_drop_in_and_nothing_else(house: House) -> None:
    """With network.conf as it is shipped, IP can be spoken; all the rest stays refused."""
    house.odd("probing", whisper={"model": "none"})
    drop_in = "/run/systemd/system/rubezh.service.d/network.conf"
    house.machine.run("sh", "-euc", f"cp {CHECKOUT}/systemd/network.conf {drop_in}; systemctl daemon-reload")
    try:
        found = came_of(house)
        said = house.machine.run("sh", "-euc", "systemd-analyze verify rubezh.service 2>&1")
    finally:
        house.machine.run("rm", drop_in)
    assert {name for name, end in found.items() if end == "done"} == ALLOWED | NETWORK, found
    assert said == ""

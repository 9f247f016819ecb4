"""What the unit forbids, tried by the daemon itself from within."""

import json

import pytest

from tests.systemd.house import STATE, House, until

pytestmark = pytest.mark.root

ALLOWED = {
    "write its state",
    "write to /tmp",
    "speak on Unix sockets",
    "lower a child's priority",
    "make new code in a child",
}


def test_s_o34_a_daemon_that_was_taken_over_can_do_next_to_nothing(house: House) -> None:
    """Of all that is tried, what it needs for its work is done, and everything else is refused."""
    house.machine.write("/etc/credstore/another", "secret")
    house.machine.run("chmod", "600", "/etc/credstore/another")
    house.odd("probing", whisper={"model": "none"})
    house.start()
    record = house.submit(house.token("probes"))
    until(30, lambda: house.record(record, "milestone") == "converted", "the probe is over")
    came_of = json.loads(house.machine.run("cat", f"{STATE}/probe.json"))
    assert len(came_of) > 30
    assert {name for name, end in came_of.items() if end == "done"} == ALLOWED, came_of

"""The service under a real systemd, as installed: how it starts, works, logs, crashes, hangs and stops."""

import json
import re
import time
from collections.abc import Callable, Iterator

import pytest

from tests.systemd.installed import CHECKOUT, PROGRAM, ROOT
from tests.systemd.private import PrivateSystemd

SAMPLE = f"{CHECKOUT}/tests/samples/milestone.opus"
UNIT = "rubezh.service"
AS_THE_SERVICE = ("runuser", "-u", "rubezh", "--", "env", "XDG_CONFIG_HOME=/etc", "XDG_STATE_HOME=/var/lib")

pytestmark = [pytest.mark.root, pytest.mark.model]


@pytest.fixture(scope="module", autouse=True)
def nothing_there(machine: PrivateSystemd) -> None:
    """Begin with an empty state folder, whatever other tests had recorded on this machine."""
    machine.run("sh", "-euc", "rm -rf /var/lib/rubezh/*")


@pytest.fixture
def service(machine: PrivateSystemd) -> Iterator[PrivateSystemd]:
    """The same machine with the service started, and stopped afterwards."""
    machine.run("systemctl", "start", UNIT)
    yield machine
    machine.run("systemctl", "stop", UNIT)
    machine.run("systemctl", "reset-failed", UNIT, check=False)


def told(*titles: str) -> str:
    """Return the shell commands that docs/operators.md has under these titles, in this order."""
    parts = re.split(r"^#+ (.*)\n", (ROOT / "docs" / "operators.md").read_text("utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    commands = [
        block for title in titles for block in re.findall(r"```sh\n(.*?)```", sections[title], re.DOTALL)
    ]
    return "\n".join(commands)


def until(seconds: float, true: Callable[[], bool]) -> None:
    """Wait until it is true; fail when it is not in that time."""
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "it did not come true in time"
        time.sleep(0.1)


def test_it_works_once_it_is_started(service: PrivateSystemd) -> None:
    """A recording can be sent when `systemctl start` returns; its way is in the journal, field by field."""
    text = service.run(*AS_THE_SERVICE, PROGRAM, "transcribe", "--language", "en", SAMPLE)
    assert "milestone" in text.lower()
    run = service.show(UNIT, "InvocationID")["InvocationID"]
    reached = service.journal(f"_SYSTEMD_INVOCATION_ID={run}", "RUBEZH_EVENT=record.reached")
    assert [entry["RUBEZH_REACHED"] for entry in reached] == ["converted", "transcribe", "done"]
    assert len({entry["RUBEZH_RECORD"] for entry in reached}) == 1
    assert {(entry["PRIORITY"], entry["SYSLOG_IDENTIFIER"]) for entry in reached} == {("6", "rubezh")}


def test_a_stop_is_a_success_and_leaves_nothing(service: PrivateSystemd) -> None:
    """Within its time, by itself, with every process gone and the last word said."""
    assert service.run("pgrep", "-u", "rubezh"), "it and its database are there"
    service.run("systemctl", "stop", UNIT)
    ended = service.show(UNIT, "ActiveState", "Result", "ExecMainStatus")
    assert ended == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
    assert service.journal(f"_SYSTEMD_UNIT={UNIT}", "RUBEZH_EVENT=service.stopped")
    assert service.run("pgrep", "-u", "rubezh", check=False) == ""


def test_a_backup_can_be_restored(service: PrivateSystemd) -> None:
    """By the commands that operators are told, as they stand there; what came after the dump is gone."""
    transcribe = [*AS_THE_SERVICE, PROGRAM, "transcribe", "--language", "en", SAMPLE]
    text = service.run(*transcribe)
    lines = told("The commands of this page").split("\n")
    names = "\n".join(["cd /root", *(line for line in lines if re.match(r"S=|PG=|as_rubezh", line)), ""])
    service.run("sh", "-euc", names + told("While the service runs"))
    service.run(*AS_THE_SERVICE, PROGRAM, "account", "add", "too late")
    restore = told("PostgreSQL alone", "Restoring a dump into the embedded PostgreSQL")
    service.run("sh", "-euc", names + restore)
    assert "too late" not in service.run(*AS_THE_SERVICE, PROGRAM, "account", "list")
    listed = json.loads(service.run(*AS_THE_SERVICE, PROGRAM, "records", "list", "--json"))
    assert [record["milestone"] for record in listed] == ["done"]
    assert service.run(*transcribe) == text


def test_a_killed_daemon_is_back_by_itself(service: PrivateSystemd) -> None:
    """Its database's last process is waited for, and it is ready again."""
    before = service.show(UNIT, "MainPID", "NRestarts")
    service.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", UNIT)
    until(60, lambda: service.show(UNIT, "NRestarts") != {"NRestarts": before["NRestarts"]})
    until(60, lambda: service.show(UNIT, "ActiveState") == {"ActiveState": "active"})
    assert service.show(UNIT, "MainPID")["MainPID"] not in {before["MainPID"], "0"}


def test_a_wrong_setting_is_told_and_not_tried_again(machine: PrivateSystemd) -> None:
    """The start fails at once with the sentence in the journal, and systemd leaves it at that."""
    machine.run("sh", "-euc", "mkdir -p /etc/rubezh; echo 'worker = 3' > /etc/rubezh/rubezh.toml")
    machine.run("systemctl", "start", UNIT, check=False)
    ended = machine.show(UNIT, "ActiveState", "ExecMainStatus", "NRestarts")
    assert (ended["ActiveState"], ended["ExecMainStatus"]) == ("failed", "2")
    assert any(
        "worker" in str(entry["MESSAGE"]) for entry in machine.journal(f"_SYSTEMD_UNIT={UNIT}", "-n", "20")
    )
    machine.run("rm", "/etc/rubezh/rubezh.toml")
    machine.run("systemctl", "reset-failed", UNIT)

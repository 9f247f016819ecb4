"""What each check makes of what it saw: what is well, what one should know, what is a fault."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from attrs import evolve

from daemon.doctor.database import judge_clock, judge_schema, judge_server, judge_store
from daemon.doctor.doors import judge_readiness
from daemon.doctor.finding import Finding, State, fault_of
from daemon.doctor.places import Room, judge_space
from daemon.doctor.recogniser import judge_memory
from daemon.doctor.units import judge_service, judge_socket, parse, span
from daemon.settings import Settings, WorkSettings
from daemon.stop import exit_budget
from storage.errors import DatabaseUnavailable
from storage.folder import StateFolder
from storage.health import Schema, Server, StoreState

GIB = 2**30
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FOLDER = StateFolder(Path("/var/lib/rubezh"))
SERVER = Server(version="17.1", now=NOON, takes_writes=True)
STORE = StoreState(store=uuid4(), is_of_this_installation=True, is_known=True)
PLENTY = Room(free=500 * GIB, total=1000 * GIB, files_free=10**6, files_total=10**7)
WELL = {
    "LoadState": "loaded",
    "UnitFileState": "enabled",
    "ActiveState": "active",
    "Result": "success",
    "NeedDaemonReload": "no",
    "NRestarts": "0",
    "TimeoutStopUSec": "1min",
}


def state_of(finding: Finding) -> State:
    """Return the state of a finding that is well-formed: whatever is not well has its remedy."""
    assert finding.told
    assert bool(finding.remedy) == (finding.state is not State.OK), finding
    return finding.state


@pytest.mark.parametrize(
    ("finding", "state"),
    [
        (judge_space(FOLDER.path, PLENTY), State.OK),
        (judge_space(FOLDER.path, evolve(PLENTY, files_free=0, files_total=0)), State.OK),
        (judge_space(FOLDER.path, evolve(PLENTY, free=4 * GIB)), State.NOTE),
        (judge_space(FOLDER.path, evolve(PLENTY, free=40 * GIB)), State.NOTE),
        (judge_space(FOLDER.path, evolve(PLENTY, free=100 * 2**20)), State.FAULT),
        (judge_space(FOLDER.path, evolve(PLENTY, files_free=10)), State.FAULT),
        (judge_server(SERVER, "of the state folder"), State.OK),
        (judge_server(evolve(SERVER, takes_writes=False), "of the state folder"), State.FAULT),
        (judge_clock(NOON, NOON + timedelta(seconds=1)), State.OK),
        (judge_clock(NOON, NOON - timedelta(seconds=60)), State.FAULT),
        (judge_clock(NOON, datetime(1970, 1, 1, tzinfo=UTC)), State.FAULT),
        (judge_schema(Schema(reached=2, known=2)), State.OK),
        (judge_schema(Schema(reached=None, known=2)), State.NOTE),
        (judge_schema(Schema(reached=1, known=2)), State.NOTE),
        (judge_schema(Schema(reached=3, known=2)), State.FAULT),
        (judge_store(FOLDER, STORE), State.OK),
        (judge_store(FOLDER, evolve(STORE, store=None)), State.NOTE),
        (judge_store(FOLDER, evolve(STORE, is_of_this_installation=False)), State.FAULT),
        (judge_store(FOLDER, evolve(STORE, is_known=False)), State.FAULT),
        (judge_memory(Settings(), 16 * GIB), State.OK),
        (judge_memory(Settings(), 2 * GIB), State.NOTE),
    ],
)
def test_one_thing_is_judged(finding: Finding, state: State) -> None:
    """At the bounds that the service itself has, and with a remedy wherever there is something to do."""
    assert state_of(finding) is state


@pytest.mark.parametrize(
    ("unit", "states", "words"),
    [
        ({}, [State.OK], "active and enabled"),
        ({"LoadState": "not-found"}, [State.NOTE], "not installed"),
        ({"ActiveState": "failed", "Result": "exit-code"}, [State.FAULT], "exit-code"),
        ({"NRestarts": "3"}, [State.NOTE], "3 times"),
        ({"NeedDaemonReload": "yes"}, [State.OK, State.FAULT], "changed"),
        ({"TimeoutStopUSec": "10s"}, [State.OK, State.FAULT], f"{exit_budget(WorkSettings()):g} s"),
        ({"TimeoutStopUSec": "infinity"}, [State.OK], "active"),
        ({"UnitFileState": ""}, [State.OK], "not enabled"),
    ],
)
def test_the_service_is_judged(unit: dict[str, str], states: list[State], words: str) -> None:
    """By what systemd says of it, and by the time that its settings may need for a stop."""
    found = list(judge_service(WELL | unit, Settings()))
    assert [state_of(each) for each in found] == states
    assert words in found[-1].told


@pytest.mark.parametrize(
    ("socket", "service", "states"),
    [
        ({}, {}, [State.OK]),
        ({"LoadState": "not-found"}, {}, []),
        ({"ActiveState": "inactive"}, {}, [State.FAULT]),
        ({"ActiveState": "failed"}, {"ActiveState": "inactive"}, [State.FAULT]),
        ({"ActiveState": "inactive"}, {"ActiveState": "inactive"}, [State.NOTE]),
    ],
)
def test_the_socket_is_judged(socket: dict[str, str], service: dict[str, str], states: list[State]) -> None:
    """A service that runs without it closes its doors at each restart."""
    found = judge_socket(WELL | socket, WELL | service)
    assert [state_of(each) for each in found] == states


def test_what_systemd_shows_is_read() -> None:
    """A block for each unit, an equal sign in a value or none at all."""
    shown = "Id=a.service\nResult=x=y\nodd\n\nId=b.socket\nResult=\n\nResult=nobody's\n"
    assert parse(shown) == {
        "a.service": {"Id": "a.service", "Result": "x=y"},
        "b.socket": {"Id": "b.socket", "Result": ""},
    }


@pytest.mark.parametrize(
    ("shown", "seconds"),
    [
        ("1min", 60),
        ("1min 30s", 90),
        ("500ms", 0.5),
        ("1w 1d 1h", 694800),
        ("infinity", None),
        ("", None),
        ("5", None),
    ],
)
def test_spans_of_time_are_read(shown: str, seconds: float | None) -> None:
    """As systemd shows them."""
    assert span(shown) == seconds


def test_a_service_says_what_is_wrong_with_it() -> None:
    """What `/readyz` misses is a fault, and so is each closed lane, with its reason."""
    (found,) = judge_readiness(Path("/s"), 200, {"not_ready": [], "closed_lanes": {}})
    assert state_of(found) is State.OK
    said = {"not_ready": ["the service is stopping"], "closed_lanes": {"whisper": "there is no model"}}
    stopping, closed = judge_readiness(Path("/s"), 503, said)
    assert (state_of(stopping), state_of(closed)) == (State.FAULT, State.FAULT)
    assert "the service is stopping" in stopping.told
    assert "there is no model" in closed.told


def test_an_error_of_ours_has_its_remedy_after_the_semicolon() -> None:
    """One without it is given the check's own."""
    with_remedy = fault_of("database", DatabaseUnavailable("it is away; start it"), "look")
    assert (with_remedy.told, with_remedy.remedy) == ("it is away", "start it")
    system = fault_of("database", FileNotFoundError(2, "No such file", "/x"), "look")
    assert (system.told, system.remedy) == ("/x cannot be used (No such file)", "look")
    without = fault_of("database", DatabaseUnavailable("it is away"), "look")
    assert (without.told, without.remedy) == ("it is away", "look")

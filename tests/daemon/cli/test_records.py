"""The service owner sees every record, and the verbs of a person do what they say or say why not."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from .conftest import Ran, submitted

Rubezh = Callable[..., Ran]
OnDatabase = Callable[..., Any]


def test_records_are_listed_by_account_and_state(
    rubezh: Rubezh, on_database: OnDatabase, tmp_path: Path
) -> None:
    """The newest comes first, and what was cut off is told."""
    ids = [
        str(on_database(partial(submitted, root=tmp_path / "store", owner=owner, filename=f"{owner}.wav")))
        for owner in ("anna", "bob", "anna")
    ]
    rubezh("records", "stop", ids[1])

    def listed(*arguments: str) -> list[str]:
        return [each["id"] for each in rubezh("records", "list", "--json", *arguments).json]

    assert listed() == ids[::-1]
    assert listed("--account", "anna") == [ids[2], ids[0]]
    assert listed("--stopped") == [ids[1]]
    assert listed("--milestone", "created") == ids[::-1]
    assert listed("--milestone", "done") == []
    assert listed("--limit", "2") == [ids[2], ids[1]]
    assert rubezh("records", "list", "--limit", "2").err == (
        "rubezh: there may be more than these 2; ask for them with --limit\n"
    )


def test_a_list_fits_a_terminal(rubezh: Rubezh, record: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns hold the id, the time, the state and the name, hostile ones written out."""
    monkeypatch.setattr("daemon.cli.showing.terminal_width", lambda: 80)
    head, line = rubezh("records", "list").out.splitlines()
    assert head.split() == ["ID", "CREATED", "STATE", "RECORDING"]
    assert line.startswith(record)
    assert len(line) <= 80
    assert "created" in line
    assert line.endswith("talk\\x1b[2J.wav")


def test_a_record_is_shown_with_the_way_out_of_its_stop(rubezh: Rubezh, record: str) -> None:
    """Cause, remedy and command stand beside the flag; scripts get the same as JSON."""
    shown = rubezh("records", "show", record)
    assert shown.code == 0
    assert "stopped" not in shown.out
    stopped = rubezh("records", "stop", record)
    assert stopped == Ran(
        0, "", f"rubezh: record {record} stopped; lift it with: rubezh records lift {record}\n"
    )
    shown = rubezh("records", "show", record)
    assert "stopped_by_owner" in shown.out
    assert f"rubezh records lift {record}" in shown.out
    found = rubezh("records", "show", record, "--json").json
    assert found["stop"]["code"] == "stopped_by_owner"
    assert found["milestone"] == "created"
    assert found["filename"] == "talk\x1b[2J.wav"


def test_verbs_that_change_nothing_say_why(rubezh: Rubezh, record: str) -> None:
    """Lifting what is not stopped, stopping twice, undeleting what is there: no success, no traceback."""
    lifted = rubezh("records", "lift", record)
    assert lifted == Ran(2, "", f"rubezh: record {record} is not stopped, so there is nothing to lift\n")
    assert rubezh("records", "undelete", record).err == f"rubezh: record {record} is not deleted\n"
    assert rubezh("records", "stop", record).code == 0
    assert rubezh("records", "stop", record).err == f"rubezh: record {record} is stopped already\n"
    assert rubezh("records", "lift", record) == Ran(
        0, "", f"rubezh: record {record} lifted; it is ready for work\n"
    )


def test_a_deleted_record_is_gone_until_it_is_had_back(rubezh: Rubezh, record: str) -> None:
    """Nothing finds it meanwhile but `undelete`."""
    deleted = rubezh("records", "delete", record)
    assert (
        deleted.err
        == f"rubezh: record {record} deleted; have it back with: rubezh records undelete {record}\n"
    )
    gone = Ran(2, "", f"rubezh: there is no record {record}; see: rubezh records list\n")
    for verb in ("show", "events", "stop", "lift", "delete"):
        assert rubezh("records", verb, record) == gone
    assert rubezh("records", "undelete", record).code == 0
    assert rubezh("records", "show", record).code == 0


def test_the_history_names_who_did_what(rubezh: Rubezh, record: str) -> None:
    """Each event has its moment, its kind and its person."""
    rubezh("records", "stop", record)
    rubezh("records", "lift", record)
    history = rubezh("records", "events", record, "--json").json
    assert [each["kind"] for each in history] == ["accepted", "stopped", "lifted"]
    lines = rubezh("records", "events", record).out.splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:3] == ["AT", "EVENT", "MILESTONE"]
    assert all(each["by"] in line for each, line in zip(history, lines[1:], strict=True))


@pytest.mark.parametrize("verb", ["show", "events", "stop", "lift", "delete", "undelete"])
def test_an_unknown_record_is_bad_input(rubezh: Rubezh, verb: str) -> None:
    """One sentence, exit code 2; so is what is no id at all."""
    unknown = "01970000-0000-7000-8000-000000000000"
    assert rubezh("records", verb, unknown) == Ran(
        2, "", f"rubezh: there is no record {unknown}; see: rubezh records list\n"
    )
    assert rubezh("records", verb, "talk.wav").err == (
        f"rubezh: invalid value for 'ID': 'talk.wav' is not a valid UUID; see: rubezh records {verb} --help\n"
    )

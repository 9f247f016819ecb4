"""Settings are read once, every fault is told at once, and the manual names each of them truly."""

import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import evolve

from daemon.settings import Settings, contradictions, load_settings, structure_settings
from daemon.structuring import Range, dotted_names
from storage.errors import SettingsRefused

MANUAL = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def _nobody_s_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RUBEZH_STATE", "RUBEZH_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))


def written(folder: Path, text: str) -> Path:
    """Return a settings file of this text."""
    file = folder / "rubezh.toml"
    file.write_text(text, "utf-8")
    return file


def refusal(raw: dict[str, Any]) -> str:
    """Return what is told about settings that are refused."""
    with pytest.raises(SettingsRefused) as caught:
        structure_settings(raw, source="here")
    return str(caught.value)


def test_defaults_do_not_contradict_each_other() -> None:
    """Nothing has to be set."""
    assert structure_settings({}, source="here") == Settings()
    assert list(contradictions(Settings())) == []


def test_a_file_sets_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    """Names are found in their tables, and whole numbers serve as seconds."""
    file = written(tmp_path, '[work]\nworkers = 7\npoll_seconds = 2\n[intake]\nlisten = "[::1]:8080"\n')
    settings = load_settings(file, state=tmp_path)
    assert settings.work == evolve(Settings().work, workers=7, poll_seconds=2.0)
    assert isinstance(settings.work.poll_seconds, float)
    assert settings.intake.listen == "[::1]:8080"
    assert settings.whisper == Settings().whisper


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_state_that_is_not_used_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The file is wrong, whoever names another folder; all its faults are one list."""
    file = written(tmp_path, "state = 3\nworkers = 1\n")
    if how == "environment":
        monkeypatch.setenv("RUBEZH_STATE", str(tmp_path))
    with pytest.raises(SettingsRefused) as caught:
        load_settings(file, state=tmp_path if how == "option" else None)
    assert str(caught.value).splitlines() == [
        f"{file}: 2 faults",
        "  state: must be text in quotes, is 3",
        "  workers: is no setting; did you mean work.workers?",
    ]


def test_s_o7_every_fault_is_told_at_once(tmp_path: Path) -> None:
    """Faults of name, type, range and form are one list, sorted, each by its dotted name."""
    file = written(
        tmp_path,
        'workers = 1\nwhisper = 5\nstate = "here"\n'
        "[work]\nworkers = 0\nworker = 2\nrenew_seconds = true\npoll_seconds = nan\n"
        '[intake]\nlisten = "here:99999"\n[database]\npool_size = 1.5\n',
    )
    with pytest.raises(SettingsRefused) as caught:
        load_settings(file)
    assert str(caught.value).splitlines() == [
        f"{file}: 9 faults",
        "  database.pool_size: must be a whole number, is 1.5",
        '  intake.listen: must be host:port (like 127.0.0.1:8080 or [::1]:8080) or empty, is "here:99999"',
        '  state: must be an absolute path, is "here"',
        "  whisper: must be a table, is 5",
        "  work.poll_seconds: must be a finite number, is nan",
        "  work.renew_seconds: must be a number, is true",
        "  work.worker: is no setting; did you mean work.workers?",
        "  work.workers: must be >= 1, is 0",
        "  workers: is no setting; did you mean work.workers?",
    ]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({"work": {"workers": True}}, "work.workers: must be a whole number, is true"),
        ({"work": {"workers": "3"}}, 'work.workers: must be a whole number, is "3"'),
        ({"work": {"workers": 10**30}}, "work.workers: must be <= 64, is 1" + "0" * 30),
        ({"work": {"workers": 10**5000}}, "work.workers: must be <= 64, is far too large"),
        (
            {"work": {"grace_seconds": 10**400}},
            "work.grace_seconds: must be a finite number, is far too large",
        ),
        ({"work": {"grace_seconds": -1}}, "work.grace_seconds: must be >= 0, is -1.0"),
        ({"work": {"exit_seconds": 0}}, "work.exit_seconds: must be > 0, is 0.0"),
        ({"database": {"listen": 1}}, "database.listen: must be true or false, is 1"),
        ({"database": {"dsn": ["x"]}}, "database.dsn: must be text in quotes, is a list"),
        ({"databse": {"dsn": "x"}}, "databse: is no setting; did you mean database?"),
        ({"zzz\n": 1}, "zzz\\n: is no setting"),
        ({"whisper": {"model": " "}}, "whisper.model: must not be empty"),
        ({"whisper": {"model": "a\0b"}}, 'whisper.model: must not hold control characters, is "a\\x00b"'),
        ({"intake": {"socket": "run/x"}}, 'intake.socket: must be an absolute path or empty, is "run/x"'),
        ({"intake": {"socket": "/" + "ж" * 60}}, "intake.socket: must be at most 107 bytes long, is 121"),
        ({"state": ""}, 'state: must be an absolute path, is ""'),
        ({"state": "~nobody-of-that-name/x"}, "state: names a home folder that nobody has"),
    ],
)
def test_a_fault_is_told_in_one_phrase(raw: dict[str, Any], told: str) -> None:
    """Whatever is wrong, the phrase says where, what is asked for and what was found."""
    message = refusal(raw)
    assert message.startswith(f"here: {told}")
    assert "\n" not in message


@pytest.mark.parametrize(
    "good", ["127.0.0.1:1", "0.0.0.0:65535", "[::]:80", "[fe80::1%eth0]:80", "host.lan:8080", ""]
)
def test_an_address_is_host_and_port(good: str) -> None:
    """Names and both kinds of address are taken."""
    assert structure_settings({"intake": {"listen": good}}, source="here").intake.listen == good


@pytest.mark.parametrize(
    "bad", ["8080", ":8080", "::1:8080", "host", "host:0", "host:65536", "h h:80", "http://h:80"]
)
def test_anything_else_is_no_address(bad: str) -> None:
    """What could not be listened on is refused before anything starts."""
    assert "intake.listen: must be host:port" in refusal({"intake": {"listen": bad}})


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (
            {"work": {"renew_seconds": 30}},
            "work.renew_seconds: must be < half of convert.lease_seconds (30), is 30",
        ),
        (
            {"whisper": {"lease_seconds": 10}},
            "database.statement_seconds: must be < half of whisper.lease_seconds (5), is 5",
        ),
        (
            {"work": {"first_retry_seconds": 601}},
            "work.longest_retry_seconds: must be >= work.first_retry_seconds (601), is 600",
        ),
        (
            {"database": {"call_seconds": 1}},
            "database.call_seconds: must be >= database.statement_seconds (5), is 1",
        ),
        (
            {"whisper": {"longest_slice_seconds": 120}},
            "whisper.longest_slice_seconds: must be > whisper.shortest_slice_seconds (120), is 120",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(raw: dict[str, Any], told: str) -> None:
    """Each setting may be right alone and wrong beside another."""
    assert told in refusal(raw)


@pytest.mark.parametrize(
    "each", [pair for pair in dotted_names(Settings) if isinstance(pair[1].validator, Range)]
)
def test_the_bounds_of_every_number_hold(each: tuple[str, "attrs.Attribute[Any]"]) -> None:
    """The last allowed number passes and the next one beyond does not, whichever setting it is."""
    dotted, setting = each
    bounds = setting.validator
    assert isinstance(bounds, Range)
    table, name = dotted.split(".")
    step = 1 if setting.type is int else 1e-9
    low = bounds.least if bounds.least is not None else bounds.above
    assert low is not None
    kind = int if setting.type is int else float
    assert f"{dotted}: must be <=" in refusal({table: {name: kind(bounds.most) + 1}})
    if bounds.least is None:
        assert f"{dotted}: must be >" in refusal({table: {name: kind(low)}})
    else:
        assert f"{dotted}: must be >=" in refusal({table: {name: low - step}})


def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """No file, a folder, other bytes, other syntax: cause and place are told."""
    other = tmp_path / "other.toml"
    with pytest.raises(
        SettingsRefused, match=r"other.toml: cannot be read \(No such file or directory\); name"
    ):
        load_settings(other)
    with pytest.raises(SettingsRefused, match=r"cannot be read \(Is a directory\)"):
        load_settings(tmp_path)
    other.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsRefused, match="is not TOML"):
        load_settings(other)
    other.write_text("[work\n")
    with pytest.raises(SettingsRefused, match=r"is not TOML \(.*line 1"):
        load_settings(other)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Some editors write one; it is no fault."""
    file = tmp_path / "rubezh.toml"
    file.write_bytes(b"\xef\xbb\xbf[work]\nworkers = 2\n")
    assert load_settings(file, state=tmp_path).work.workers == 2


def test_the_command_line_goes_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearer the hand, the stronger; relative paths given there count from where one stands."""
    file = written(tmp_path, 'state = "/from/file"\n')
    assert load_settings(file).state == Path("/from/file")
    monkeypatch.setenv("RUBEZH_CONFIG", str(file))
    assert load_settings().state == Path("/from/file")
    monkeypatch.setenv("RUBEZH_STATE", "/from/environment")
    assert load_settings().state == Path("/from/environment")
    monkeypatch.chdir(tmp_path)
    assert load_settings(state=Path("given")).state == tmp_path / "given"


def test_a_named_file_must_be_there_and_the_usual_one_need_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names a file means it."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert load_settings().work == Settings().work
    usual = tmp_path / "config" / "rubezh"
    usual.mkdir(parents=True)
    written(usual, "[work]\nworkers = 9\n")
    assert load_settings().work.workers == 9
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    monkeypatch.setenv("HOME", "relative")
    assert load_settings(state=tmp_path).work == Settings(state=tmp_path).work
    monkeypatch.setenv("RUBEZH_CONFIG", str(tmp_path / "gone.toml"))
    with pytest.raises(SettingsRefused, match=r"gone\.toml: cannot be read"):
        load_settings()


def test_the_manual_names_every_setting_with_its_default_and_bounds() -> None:
    """What docs/settings.md says and what the code does are the same, in the same order."""
    written_down = re.findall(r"^\| `([\w.]+)` \| (.+?) \| (.+?) \|", MANUAL.read_text("utf-8"), re.MULTILINE)
    in_code = [(dotted, _default(each), _bounds(each)) for dotted, each in dotted_names(Settings)]
    assert written_down == in_code


def _default(each: "attrs.Attribute[Any]") -> str:
    return "see above" if each.type is Path else f"`{json.dumps(each.default)}`"


def _bounds(each: "attrs.Attribute[Any]") -> str:
    match each.validator:
        case Range(least=least, above=None, most=most):
            return f"{least} to {most:.0f}"
        case Range(above=above, most=most):
            return f"more than {above}, at most {most:.0f}"
        case _:
            return {str: "text", bool: "true or false", Path: "absolute path"}[each.type or object]

"""Every way of ending has its words and its exit code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from daemon.cli import program
from daemon.cli.program import ended
from storage.errors import DatabaseUnavailable, SettingsRefused

HEAVY = (
    "asyncio",
    "av",
    "ctranslate2",
    "faster_whisper",
    "hypercorn",
    "numpy",
    "psycopg",
    "starlette",
    "trio",
)


def test_the_overview_imports_nothing_heavy() -> None:
    """`rubezh --help` and completion come at once."""
    code = (
        "import sys; from daemon.cli.program import ended; ended(['--help']); "
        f"print('LOADED', [name for name in {HEAVY} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert "transcribe" in ran.stdout
    assert "LOADED []" in ran.stdout


def test_the_overview_says_what_each_command_says_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """The lines of `rubezh --help` are the commands' own, though they are not imported for it."""
    assert ended(["--help"]) == 0
    overview = capsys.readouterr().out
    context = click.Context(program.program)
    for name in program.program.list_commands(context):
        command = program.program.get_command(context, name)
        assert command is not None
        assert command.help is not None
        line = re.search(rf"^  {name} +(.+)$", overview, re.MULTILINE)
        assert line is not None
        assert line[1] == command.help.partition("\n")[0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "rubezh: no such command 'nothing'; see: rubezh --help\n"),
        (
            ["records", "list", "--limit", "x"],
            "rubezh: invalid value for '--limit': 'x' is not a valid integer",
        ),
        (["token", "issue"], "rubezh: missing argument 'ACCOUNT'; see: rubezh token issue --help\n"),
        (
            ["account", "list", "--state", ""],
            "rubezh: invalid value for '--state': an empty name names nothing; see: rubezh account list",
        ),
        (
            ["transcribe", ""],
            "rubezh: invalid value for 'FILE...': an empty name names nothing; see: rubezh transcribe",
        ),
        (
            ["transcribe", "a.wav", "-o", ""],
            "rubezh: invalid value for '-o' / '--output': an empty name names nothing; see: rubezh",
        ),
        (
            ["account", "list", "--colour"],
            "rubezh: no such option '--colour'; see: rubezh account list --help\n",
        ),
    ],
)
def test_wrong_use_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    """With the way to the help, and exit code 2."""
    assert ended(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(told)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("closed", "code", "out", "err"),
    [
        ("2>&-", 0, "rubezh 0", ""),
        ("<&-", 0, "rubezh 0", ""),
        (">&-", 1, "", "rubezh: the result cannot be written to stdout (Bad file descriptor)\n"),
        (">&- 2>&- <&-", 1, "", ""),
        (">/dev/full", 1, "", "rubezh: the result cannot be written to stdout (No space left on device)\n"),
    ],
)
def test_a_result_is_written_or_the_exit_code_says_so(
    tmp_path: Path, closed: str, code: int, out: str, err: str
) -> None:
    """Also where whoever started us has closed the descriptors that every program is given."""
    program = Path(sys.executable).with_name("rubezh")
    outcome = tmp_path / "out"
    script = f"'{program}' version >'{outcome}' {closed}"
    ran = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (code, err)
    assert outcome.read_text("utf-8").startswith(out)
    assert bool(out) == bool(outcome.stat().st_size)


def test_a_group_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """It is wrong use all the same."""
    assert ended(["records"]) == 2
    assert "Commands:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (SettingsRefused("x: no"), 2, "rubezh: x: no\n"),
        (DatabaseUnavailable("gone"), 1, "rubezh: gone\n"),
        (ExceptionGroup("", [ExceptionGroup("", [SettingsRefused("x: no")])]), 2, "rubezh: x: no\n"),
        (
            ExceptionGroup("", [DatabaseUnavailable("gone"), SettingsRefused("no")]),
            1,
            "rubezh: gone\nrubezh: no\n",
        ),
        (ExceptionGroup("", [DatabaseUnavailable("gone")] * 3), 1, "rubezh: gone\n"),
        (KeyboardInterrupt(), 130, "rubezh: interrupted\n"),
        (
            BaseExceptionGroup("", [KeyboardInterrupt(), DatabaseUnavailable("gone")]),
            130,
            "rubezh: interrupted\n",
        ),
    ],
)
def test_an_error_of_ours_is_its_own_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    told: str,
) -> None:
    """Whatever groups it comes in, once, without a traceback."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(program.program, "main", fail)
    assert ended([]) == code
    assert capsys.readouterr() == ("", told)


def test_any_other_error_is_a_fault_of_ours_and_shows_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody can mend what hides its traceback, not even beside an error of the world."""

    def fail(*_: object, **__: object) -> None:
        raise ExceptionGroup("", [DatabaseUnavailable("gone"), ZeroDivisionError("ours")])

    monkeypatch.setattr(program.program, "main", fail)
    assert ended([]) == 1
    assert "ZeroDivisionError: ours" in capsys.readouterr().err


def _rubezh(
    *arguments: str, stdout: int, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from daemon.cli import main; main()", *arguments]
    environment = os.environ | (environment or {})
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=60, env=environment
    )


def test_a_reader_that_leaves_is_no_fault() -> None:
    """`rubezh ... | head -0` ends without a word."""
    reading, writing = os.pipe()
    os.close(reading)
    ran = _rubezh("version", stdout=writing)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (1, "")


def test_a_full_disk_behind_stdout_is_told() -> None:
    """What could not be written is no success."""
    full = os.open("/dev/full", os.O_WRONLY)
    ran = _rubezh("version", stdout=full)
    os.close(full)
    assert ran.returncode == 1
    assert ran.stderr == "rubezh: the result cannot be written to stdout (No space left on device)\n"


def test_commands_make_a_cluster_for_themselves_and_leave_nothing_running(reachable: Path) -> None:
    """The first makes it, the next finds what the first wrote; several at once share one."""
    environment = {"RUBEZH_STATE": str(reachable / "commands"), "RUBEZH_CONFIG": ""}
    added = _rubezh("account", "add", "anna", stdout=subprocess.PIPE, environment=environment)
    assert (added.returncode, added.stdout) == (0, "")
    command = [sys.executable, "-c", "from daemon.cli import main; main()", "account", "list", "--json"]
    several = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment)
        for _ in range(3)
    ]
    for each in several:
        out, _ = each.communicate(timeout=60)
        assert each.returncode == 0
        assert '"anna"' in out
    assert not list((reachable / "commands" / "postgres" / "run").glob(".s.PGSQL.*"))

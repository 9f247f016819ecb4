"""`rubezh transcribe` and `rubezh serve` as real processes, on a real cluster, with the real model."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from attrs import frozen

from stages.recognisers.models import find_model
from storage.record import StopCode
from tests.models import shared_models
from tests.processes import CHECKOUT, eventually, is_alive

SAMPLE = CHECKOUT / "tests" / "samples" / "milestone.opus"
SAID = SAMPLE.with_suffix(".txt").read_text("utf-8")
RUBEZH = [sys.executable, "-c", "from daemon.cli import main; main()"]
SECONDS = 100

pytestmark = pytest.mark.model


@frozen
class Machine:
    """One state folder and the commands run on it."""

    folder: Path

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / "state"

    @property
    def environment(self) -> dict[str, str]:
        """What the commands find around them."""
        return os.environ | {
            "RUBEZH_STATE": str(self.state),
            "RUBEZH_CONFIG": "",
            "XDG_CONFIG_HOME": str(self.folder),
            "PYTHONPATH": str(CHECKOUT),
            "COLUMNS": "100",
        }

    def run(self, *words: str | bytes | Path, **options: object) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        command = [*RUBEZH, *words]
        return subprocess.run(  # type: ignore[call-overload,no-any-return]  # options pass as given
            command, env=self.environment, text=True, check=False, timeout=SECONDS, **given
        )

    @contextmanager
    def started(self, *words: str | Path) -> Iterator["subprocess.Popen[str]"]:
        """Start a command; whatever happens, it is gone at the end."""
        process = subprocess.Popen(
            [*RUBEZH, *words],
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=SECONDS)

    def records(self) -> dict[str, str]:
        """Return the milestones of the records there are, by id."""
        return {
            each["id"]: each["milestone"] for each in json.loads(self.run("records", "list", "--json").stdout)
        }


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A machine on which the model is there and nothing was done yet; its paths are short and passable."""
    models = find_model("base", shared_models())
    folder = Path(tempfile.mkdtemp(prefix="rz-"))
    folder.chmod(0o755)
    (folder / "state" / "models").mkdir(parents=True)
    shutil.copytree(models, folder / "state" / "models" / "base", copy_function=os.link)
    yield Machine(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def done(machine: Machine) -> Machine:
    """The machine after the sample was turned into text."""
    ran = machine.run("transcribe", SAMPLE)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == SAID.split()
    return machine


def nothing(folder: Path, name: str) -> Path:
    """Return a file of its own content that is no recording: it is stopped at the first look, at no cost."""
    path = folder / name
    path.write_bytes(b"no sound in here, said " + os.fsencode(name))
    return path


def test_s_o8_a_recording_becomes_text_and_the_second_time_at_once(done: Machine, tmp_path: Path) -> None:
    """Text on stdout, progress on stderr; every form comes from the one record."""
    before = done.records()
    again = done.run("transcribe", SAMPLE)
    assert again.stdout.split() == SAID.split()
    assert again.stderr == "rubezh: milestone.opus: done, 0:17 / 0:17\n"
    form = json.loads(done.run("transcribe", SAMPLE, "--format", "json").stdout)
    assert form["version"] == 1
    assert form["language"] == "en"
    assert form["text"].split() == SAID.split()
    assert [segment["start"] for segment in form["segments"]] == sorted(
        segment["start"] for segment in form["segments"]
    )
    place = tmp_path / "subtitles.vtt"
    assert done.run("transcribe", SAMPLE, "--format", "vtt", "-o", place).stdout == ""
    assert place.read_text("utf-8").startswith("WEBVTT\n\n00:00:0")
    assert done.records() == before


def test_s_o9_what_cannot_be_recognised_stops_alone(done: Machine, tmp_path: Path) -> None:
    """The others have their texts, in order; the exit code and stderr tell of the stops; again at once."""
    notes, more = nothing(tmp_path, "notes.txt"), nothing(tmp_path, "more.wav")
    started = time.monotonic()
    for _ in range(2):
        ran = done.run("transcribe", notes, SAMPLE, more)
        assert ran.returncode == 1
        assert ran.stdout.split() == SAID.split()
        assert f"rubezh: {notes}: stopped at created: {StopCode.NOT_MEDIA.message}" in ran.stderr
        assert f"rubezh: {more}: stopped at created: {StopCode.NOT_MEDIA.message}" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert ran.stderr.count("lift the stop with: rubezh records lift ") == 2
    assert time.monotonic() - started < 60


def test_the_track_that_is_asked_for_reaches_the_conversion(done: Machine) -> None:
    """It is another record than without, and the reason names the track that is not there."""
    ran = done.run("transcribe", "--track", "3", "--channels", "split", SAMPLE)
    assert ran.returncode == 1
    assert StopCode.NO_AUDIO.message in ran.stderr
    assert "reason: audio track 3 was asked for, counted from 0, and the file has 1" in ran.stderr
    wrong = done.run("transcribe", "--track", "-1", SAMPLE)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--track" in wrong.stderr


def test_hostile_names_are_told_harmlessly(done: Machine, tmp_path: Path) -> None:
    """Dashes, newlines, escapes and bytes that are no text: the terminal and the table obey none of them."""
    names = ["-x.wav", "a\nb\x1b[2J.wav", "\udcff\udcfe.wav", "[red]c.wav"]
    paths = [nothing(tmp_path, name) for name in names]
    ran = done.run("transcribe", "--", *(path.name for path in paths), cwd=tmp_path)
    assert ran.returncode == 1
    assert "\x1b" not in ran.stderr
    for told in ("-x.wav", "a\\nb\\x1b[2J.wav", "\\xff\\xfe.wav", "[red]c.wav"):
        assert f"rubezh: {told}: stopped" in ran.stderr
    listed = done.run("records", "list").stdout
    assert "\x1b" not in listed
    assert "a\\nb\\x1b[2J.wav" in listed


def test_s_o8_ctrl_c_gives_back_and_the_same_command_continues(done: Machine) -> None:
    """In a terminal: within moments, with one sentence, nothing left running, no failure counted."""
    words = [*RUBEZH, "transcribe", str(SAMPLE), "--language", "en"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(words[0], words, done.environment)  # noqa: S606 - the command's own words
    screen = bytearray()

    def sees(words: bytes) -> bool:
        screen.extend(os.read(terminal, 65536))
        return words in screen

    eventually(lambda: sees(b"recognising"), "the recognition began")
    children = _children(pid)
    os.write(terminal, b"\x03")
    asked = time.monotonic()
    eventually(lambda: sees(b"interrupted; the same command continues"), "the sentence")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130
    assert time.monotonic() - asked < 8
    assert b"Traceback" not in screen
    assert not [child for child in children if is_alive(child)]
    (record,) = [each for each, milestone in done.records().items() if milestone == "transcribe"]
    assert json.loads(done.run("records", "show", record, "--json").stdout)["failures"] == 0
    last = json.loads(done.run("records", "events", record, "--json").stdout)[-1]
    assert last["kind"] == "given_back"
    continued = done.run("transcribe", SAMPLE, "--language", "en")
    assert continued.returncode == 0, continued.stderr
    assert continued.stdout.split() == SAID.split()
    assert done.records()[record] == "done"


def test_two_commands_at_once_share_a_state_folder(done: Machine, tmp_path: Path) -> None:
    """The second is a guest of the first, and goes on alone when the first has left; each has its results."""
    with (
        done.started("transcribe", nothing(tmp_path, "one.wav"), SAMPLE) as first,
        done.started("transcribe", SAMPLE, nothing(tmp_path, "two.wav")) as second,
    ):
        for process in (first, second):
            out, err = process.communicate(timeout=SECONDS)
            assert process.returncode == 1, err
            assert out.split() == SAID.split()
            assert err.count(StopCode.NOT_MEDIA.message) == 1
            assert "Traceback" not in err


def test_beside_the_service_its_workers_do_the_work(done: Machine, tmp_path: Path) -> None:
    """Its cluster is used, a second service is told who serves, and it ends by SIGTERM with exit code 0."""
    with done.started("serve") as service:
        eventually((done.state / "rubezh.sock").exists, "the service opened its doors")
        ran = done.run("transcribe", nothing(tmp_path, "beside.wav"), SAMPLE)
        assert ran.returncode == 1
        assert ran.stdout.split() == SAID.split()
        (record,) = [UUID(line.split()[-1]) for line in ran.stderr.splitlines() if "records lift" in line]
        stopped = json.loads(done.run("records", "events", str(record), "--json").stdout)[-1]
        assert f":{service.pid}:" in stopped["by"]
        refused = done.run("serve")
        assert refused.returncode == 1
        assert refused.stderr == (
            f"rubezh: the state folder {done.state} is in use by process {service.pid}; "
            "stop it or choose another with --state\n"
        )
        service.send_signal(signal.SIGTERM)
        _, log = service.communicate(timeout=SECONDS)
        assert service.returncode == 0, log
        assert "record.stopped" in log
        assert "Traceback" not in log


def test_when_the_service_leaves_the_command_goes_on_alone(done: Machine) -> None:
    """Whoever waited beside it need not know."""
    with done.started("serve") as service:
        eventually((done.state / "rubezh.sock").exists, "the service opened its doors")
        with done.started("transcribe", SAMPLE, "--language", "de") as waiting:
            assert waiting.stderr is not None
            assert "converting" in waiting.stderr.readline()
            service.send_signal(signal.SIGTERM)
            service.communicate(timeout=SECONDS)
            out, err = waiting.communicate(timeout=SECONDS)
            assert waiting.returncode == 0, err
            assert out.strip()


def test_s_o9_nothing_is_begun_when_a_recording_cannot_be_read(done: Machine, tmp_path: Path) -> None:
    """Bad input is told before any work, and leaves no record."""
    before = done.records()
    ran = done.run("transcribe", nothing(tmp_path, "fine.wav"), tmp_path / "gone.wav")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"rubezh: {tmp_path}/gone.wav: there is no such file\n"
    assert done.run("transcribe", SAMPLE, "--language", "English!").stderr == (
        "rubezh: language must be a code like en or pt-br, or auto\n"
    )
    assert done.records() == before


def _children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]

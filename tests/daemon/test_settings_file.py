"""The file of settings is read as far as it goes, and not waited for."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from daemon import settings_file
from daemon.settings_file import MOST_BYTES, read_file
from storage.errors import SettingsRefused

ROOT = Path(__file__).parents[2]


def test_a_pipe_serves_as_a_file(tmp_path: Path) -> None:
    """What a shell's `<(...)` names, also when it is written bit by bit."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def write() -> None:
        with fifo.open("wb", buffering=0) as pipe:
            for part in (b"[work]\n", b"workers ", b"= 2\n"):
                pipe.write(part)
                time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_file(fifo) == {"work": {"workers": 2}}
    writer.join()


@pytest.mark.parametrize("writer", ["nobody", "somebody silent"])
def test_a_pipe_that_says_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    """In one sentence, after a moment."""
    monkeypatch.setattr(settings_file, "PATIENCE_SECONDS", 0.2)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    descriptor = os.open(fifo, os.O_RDWR) if writer != "nobody" else -1
    with pytest.raises(SettingsRefused, match="nobody wrote it"):
        read_file(fifo)
    if descriptor >= 0:
        os.close(descriptor)


def test_what_has_no_end_is_refused() -> None:
    """A megabyte is more than any settings."""
    with pytest.raises(SettingsRefused, match=str(MOST_BYTES)):
        read_file(Path("/dev/zero"))


def test_what_a_shell_hands_over_is_read(tmp_path: Path) -> None:
    """`--config <(echo ...)`, whose writer has long gone when it is read."""
    program = tmp_path / "program.py"
    program.write_text(
        "import pathlib, sys\nfrom daemon.settings_file import read_file\n"
        "print(read_file(pathlib.Path(sys.argv[1])))\n"
    )
    command = ["bash", "-c", f"'{sys.executable}' '{program}' <(echo 'state = \"/x\"')"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=environment)
    assert done.stdout == "{'state': '/x'}\n"

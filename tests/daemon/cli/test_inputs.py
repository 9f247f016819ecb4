"""Recordings that cannot be read are told before any work, all of them at once."""

import os
from pathlib import Path

import pytest

from daemon.cli.inputs import checked_inputs
from storage.errors import Refused


def told(*paths: Path, largest_bytes: int = 100) -> list[str]:
    """Return the sentences about files that are refused."""
    with pytest.raises(Refused) as caught:
        checked_inputs(paths, largest_bytes=largest_bytes)
    return str(caught.value).splitlines()


def test_each_fault_is_one_sentence(tmp_path: Path) -> None:
    """Missing, empty, a folder, a pipe, too large: all in one go; what can be read is not mentioned."""
    good, empty, pipe, large = (tmp_path / name for name in ("good", "empty", "pipe", "large"))
    limit = (
        "101 bytes are more than intake.largest_bytes allows (100); raise that setting or cut the recording"
    )
    good.write_bytes(b"x")
    empty.write_bytes(b"")
    os.mkfifo(pipe)
    large.write_bytes(bytes(101))
    missing, below = tmp_path / "missing", good / "below"
    assert told(good, missing, empty, tmp_path, pipe, large, below, missing) == [
        f"{missing}: there is no such file",
        f"{empty}: the file is empty",
        f"{tmp_path}: this is a folder; name the recordings in it",
        f"{pipe}: this is no regular file; save the recording to one first",
        f"{large}: {limit}",
        f"{below}: cannot be read (Not a directory)",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_one_may_not_read_is_told(tmp_path: Path) -> None:
    """The cause is permission, and it says so."""
    file = tmp_path / "secret"
    file.write_bytes(b"x")
    file.chmod(0)
    assert told(file) == [f"{file}: you may not read this file"]


def test_hostile_names_are_files_like_others(tmp_path: Path) -> None:
    """Dashes, newlines, escapes and bytes that are no text are read, and told harmlessly."""
    files = [tmp_path / name for name in ("-x", "a\nb", "\x1b[31m", "\udcff\udcfe", " ", "[bold]", "ы" * 120)]
    for file in files:
        file.write_bytes(b"x")
    assert checked_inputs(files, largest_bytes=1) == tuple(files)
    (line,) = told(tmp_path / "gone\n\x1b\udcff")
    assert line == f"{tmp_path}/gone\\n\\x1b\\xff: there is no such file"

"""A transcript is in its place whole, or what was there before is."""

import os
import stat
from pathlib import Path

import pytest

from daemon.cli.outputs import Outputs, deliver, planned_outputs
from storage.errors import Refused, Unavailable


def recordings(folder: Path, *names: str) -> tuple[Path, ...]:
    """Return small files of these names."""
    paths = tuple(folder / name for name in names)
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"sound")
    return paths


def refusal(inputs: tuple[Path, ...], form: str, asked: Path | None) -> str:
    """Return the sentence about a plan that is refused."""
    with pytest.raises(Refused) as caught:
        planned_outputs(inputs, form, asked)
    return str(caught.value)


def test_without_a_place_everything_goes_to_stdout(tmp_path: Path) -> None:
    """Texts follow one another; a second subtitle file inside the first would be noise."""
    two = recordings(tmp_path, "a.wav", "b.wav")
    assert planned_outputs(two, "txt", None) == Outputs((None, None))
    assert planned_outputs(two, "json", Path("-")) == Outputs((None, None))
    assert planned_outputs(two[:1], "srt", None) == Outputs((None,))
    assert refusal(two, "srt", None) == (
        "several recordings make several srt files; name a folder for them with -o FOLDER"
    )


def test_a_folder_gets_a_file_for_each_recording(tmp_path: Path) -> None:
    """It is made when several recordings need it, and may exist already."""
    two = recordings(tmp_path, "a.wav", "b.tar.wav")
    made = tmp_path / "x" / "y"
    assert planned_outputs(two, "srt", made).places == (made / "a.srt", made / "b.tar.srt")
    assert made.is_dir()
    assert planned_outputs(two[:1], "vtt", made).places == (made / "a.vtt",)
    assert planned_outputs(two[:1], "vtt", tmp_path / "new.vtt").places == (tmp_path / "new.vtt",)


def test_two_recordings_never_share_a_file(tmp_path: Path) -> None:
    """The same recording named twice is one."""
    two = recordings(tmp_path, "a.wav", "a.mp3")
    assert "two recordings would be written here" in refusal(two, "txt", tmp_path)
    assert planned_outputs((two[0], two[0]), "txt", tmp_path).places == (tmp_path / "a.txt",) * 2


def test_a_recording_is_never_replaced(tmp_path: Path) -> None:
    """Not even one that calls itself a text, or is reached by a link."""
    (odd,) = recordings(tmp_path, "talk.txt")
    link = tmp_path / "link"
    link.symlink_to(odd)
    assert "would replace the recording" in refusal((odd,), "txt", tmp_path)
    assert "would replace the recording" in refusal((odd,), "txt", link)


def test_a_place_that_cannot_be_is_refused_before_the_work(tmp_path: Path) -> None:
    """No such folder, or a file where a folder must be."""
    one, two = recordings(tmp_path, "a.wav", "b.wav")
    assert "there is no folder" in refusal((one,), "txt", tmp_path / "gone" / "a.txt")
    assert "cannot be made (File exists)" in refusal((one, two), "txt", one)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """Its mode stays, a link stays a link, and nothing else is left in the folder."""
    place, link = tmp_path / "a.txt", tmp_path / "link"
    deliver("first\n", place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o666 & ~_umask()
    place.chmod(0o640)
    link.symlink_to(place)
    deliver("вторая\n", link)
    assert place.read_text("utf-8") == "вторая\n"
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [place, link]
    assert link.is_symlink()


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is one sentence, and neither half a file nor a spare one stays."""
    place = tmp_path / "a.txt"
    place.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match=r"a\.txt: cannot be written \(No space left on device\)"):
        deliver("new", place)
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_what_is_no_regular_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    """A pipe here; the same keeps root's `-o /dev/null` from becoming a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        deliver("text", pipe)
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

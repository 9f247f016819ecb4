"""A copy is whole or it is refused, and its samples are found at their exact places."""

from pathlib import Path

import av
import numpy as np
import pytest

from stages.media.wave64 import DamagedCopy, Writer, open_samples, read_header, read_sides
from tests.stages.media.studio import record, tone


def written(path: Path, samples: "np.ndarray[tuple[int], np.dtype[np.int16]]") -> Path:
    """Write a copy."""
    with Writer(path) as writer:
        writer.write(samples)
        writer.finish()
    return path


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 16_000, 16_001])
def test_what_was_written_is_read(number: int, tmp_path: Path) -> None:
    """Any number of samples comes back, also when it does not fill the alignment."""
    samples = np.arange(number, dtype=np.int16) - 7
    path = written(tmp_path / "a.w64", samples)
    assert np.array_equal(open_samples(path), samples)
    assert path.stat().st_size % 8 == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.w64"]


def test_two_sides_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    """Whole, from the middle, past the end, and by FFmpeg; silence is silence on both."""
    path, samples = tmp_path / "a.w64", np.arange(14, dtype=np.int16).reshape(2, 7)
    with Writer(path, sides=2) as writer:
        writer.write(samples)
        writer.write_silence(3)
        writer.write(samples)
        writer.finish()
    whole = np.hstack([samples, np.zeros((2, 3), np.int16), samples])
    assert np.array_equal(open_samples(path), whole.T)
    assert (read_header(path).samples, read_header(path).sides) == (17, 2)
    for start, most in ((0, 100), (5, 4), (16, 9), (17, 1), (40, 1)):
        found, total = read_sides(path, start, most)
        assert np.array_equal(found, whole[:, start : start + most])
        assert total == 17
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray().reshape(-1, 2) for frame in container.decode(audio=0)]
    assert np.array_equal(np.concatenate(frames), whole.T)


def test_others_read_ours(tmp_path: Path) -> None:
    """FFmpeg finds the same samples in our file."""
    samples = tone(1, 16_000)[:, 0]
    with av.open(str(written(tmp_path / "a.w64", samples))) as container:
        frames = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
    assert np.array_equal(np.concatenate(frames), samples)


def test_ours_reads_others(tmp_path: Path) -> None:
    """A file by FFmpeg's own muxer, with more parts in it than ours, is read too."""
    samples = tone(1, 16_000)
    record(tmp_path / "a.w64", "w64", "pcm_s16le", samples, 16_000)
    assert np.array_equal(open_samples(tmp_path / "a.w64"), samples[:, 0])


def test_what_is_not_finished_has_no_name(tmp_path: Path) -> None:
    """A work that ends early leaves nothing, and until the end nothing has the copy's name."""
    path = tmp_path / "a.w64"
    with Writer(path) as writer:
        writer.write(np.ones(1000, np.int16))
        assert not path.exists()
        with pytest.raises(DamagedCopy):
            read_header(tmp_path / "a.w64.part")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_past_4_gib(tmp_path: Path) -> None:
    """Forty hours and their last samples: the size has no limit that matters, and silence costs no disk."""
    path = tmp_path / "a.w64"
    silent = 40 * 3600 * 16_000
    with Writer(path) as writer:
        writer.write_silence(silent)
        writer.write(np.array([1, 2, 3], np.int16))
        writer.finish()
    samples = open_samples(path)
    assert samples.shape == (silent + 3,)
    assert samples[silent - 1 :].tolist() == [0, 1, 2, 3]
    assert path.stat().st_size > 4 * 2**30
    assert path.stat().st_blocks * 512 < 2**20


DAMAGE = {
    "is no Wave64": lambda data: b"RIFF" + data[4:],
    "cut or unfinished": lambda data: data[:-16],
    "should have": lambda data: data + b"more",
    "is not 16 kHz": lambda data: data.replace((16_000).to_bytes(4, "little"), (8_000).to_bytes(4, "little")),
    "longer than the file": lambda data: data[:96] + (1 << 40).to_bytes(8, "little") + data[104:],
    "shorter than its own name": lambda data: data[:96] + bytes(8) + data[104:],
    "ends before its samples": lambda data: data[:16] + (80).to_bytes(8, "little") + data[24:80],
}


@pytest.mark.parametrize("fault", DAMAGE)
def test_a_damaged_header_is_refused(fault: str, tmp_path: Path) -> None:
    """The fault is named; wrong samples are never returned."""
    path = written(tmp_path / "a.w64", np.ones(1000, np.int16))
    path.write_bytes(DAMAGE[fault](path.read_bytes()))
    with pytest.raises(DamagedCopy, match=fault):
        open_samples(path)


def test_no_beginning_of_a_copy_passes_for_one(tmp_path: Path) -> None:
    """A copy cut at any byte is refused."""
    whole = written(tmp_path / "a.w64", np.ones(20, np.int16)).read_bytes()
    cut = tmp_path / "cut.w64"
    for size in range(len(whole)):
        cut.write_bytes(whole[:size])
        with pytest.raises(DamagedCopy):
            read_header(cut)

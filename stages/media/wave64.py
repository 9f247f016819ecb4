"""Sony Wave64: the recognition copy, 16 kHz s16le, read back at exact sample offsets.

It has one side, or two where a call's are kept apart; whoever wants one sound of both asks for no side and is
given their mix. Plain WAV ends at 4 GiB, which is 37 hours of this. The writer is our own and not FFmpeg's
muxer because a copy is a header of 104 bytes and then the samples: here a write that fails is a plain OSError
of that write, the sizes are put in once, before the fsync, and the file gets its name last.
"""

import os
import struct
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from storage.errors import StageFailed

RATE = 16_000  # samples per second
SAMPLE_BYTES = 2

_TAIL = bytes.fromhex("f3acd3118cd100c04f8edb8a")
_RIFF = b"riff" + bytes.fromhex("2e91cf11a5d628db04c10000")
_WAVE, _FMT, _DATA = b"wave" + _TAIL, b"fmt " + _TAIL, b"data" + _TAIL
_CHUNK = struct.Struct("<16sQ")  # a chunk's name and its size, these 24 bytes counted in
_FORMAT = struct.Struct("<HHIIHH")
_PCM = 1
_OURS = {
    (_PCM, sides, RATE, RATE * sides * SAMPLE_BYTES, sides * SAMPLE_BYTES, 8 * SAMPLE_BYTES): sides
    for sides in (1, 2)
}
_HEADER_BYTES = 3 * _CHUNK.size + len(_WAVE) + _FORMAT.size
_ALIGNMENT = 8
_MOST_CHUNKS = 64


class DamagedCopy(StageFailed):
    """A recognition copy is cut, unfinished, or not ours."""


@frozen(kw_only=True)
class Header:
    """Where the samples are: `data_offset` in bytes from the start of the file, `samples` of each side."""

    data_offset: int
    samples: int
    sides: int

    @property
    def seconds(self) -> float:
        """The length of the copy."""
        return self.samples / RATE


class Writer:
    """Writes a copy under `<name>.part`; `finish` makes it whole and durable and gives it its name.

    Leaving the block without `finish` removes what was written. Raises OSError when the disk does.
    One of two sides is `<name>.sides.part` meanwhile: it may be written beside the one of their mix.
    """

    def __init__(self, path: Path, sides: int = 1) -> None:
        self._path = path
        self._sides = sides
        self._part = path.with_name(path.name + (".part" if sides == 1 else ".sides.part"))
        # No buffer: it would try to write what nobody wants any more, after the disk has failed.
        self._file = self._part.open("wb", buffering=0)
        self._finished = False
        self.samples = 0
        # The header comes last: until then it is no copy by its content either.
        self._file.seek(_HEADER_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._finished:
            self._file.close()
        else:
            self.drop()

    def write(self, samples: NDArray[np.int16]) -> None:
        """Append samples, shape (n,), or (sides, n)."""
        side_by_side = samples if samples.ndim == 1 else np.column_stack(list(samples))
        self._put(side_by_side.astype("<i2", copy=False).tobytes())
        self.samples += samples.shape[-1]

    def write_silence(self, samples: int) -> None:
        """Append that many samples of silence: a hole in the file, which reads as zeros and costs no time."""
        self._file.truncate(self._file.seek(samples * self._sides * SAMPLE_BYTES, os.SEEK_CUR))
        self.samples += samples

    def drop(self) -> None:
        """Remove what was written, at once."""
        self._file.close()
        self._part.unlink(missing_ok=True)

    def finish(self) -> None:
        """Fill in the sizes, fsync, and rename; the folder's fsync is the caller's."""
        self._put(bytes(-self.samples * self._sides * SAMPLE_BYTES % _ALIGNMENT))
        self._file.seek(0)
        self._put(_header(self.samples, self._sides))
        os.fsync(self._file.fileno())
        self._part.replace(self._path)
        self._finished = True

    def _put(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]


def read_header(path: Path) -> Header:
    """Return where the samples of a copy are; raises DamagedCopy with the fault, and OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(_CHUNK.size + len(_WAVE))
        if len(start) < _CHUNK.size + len(_WAVE) or start[:16] != _RIFF or start[_CHUNK.size :] != _WAVE:
            raise DamagedCopy(f"{path.name} is no Wave64 file")
        told = _CHUNK.unpack_from(start)[1]
        if told != size:
            raise DamagedCopy(f"{path.name} should have {told} bytes and has {size}: it is cut or unfinished")
        sides = 0
        for _ in range(_MOST_CHUNKS):
            name, length = _read_chunk(file.read(_CHUNK.size), path)
            inside = length - _CHUNK.size
            if file.tell() + inside > size:
                raise DamagedCopy(f"{path.name} has a part that is longer than the file")
            if name == _DATA and sides:
                # Half a sample at the very end is none.
                samples = inside // (sides * SAMPLE_BYTES)
                return Header(data_offset=file.tell(), samples=samples, sides=sides)
            if name == _FMT:
                sides = _read_sides(file.read(_FORMAT.size), path)
                inside -= _FORMAT.size
            file.seek(inside + -length % _ALIGNMENT, os.SEEK_CUR)
    raise DamagedCopy(f"{path.name} has no samples in its first {_MOST_CHUNKS} parts")


def open_samples(path: Path) -> "np.memmap[Any, np.dtype[np.int16]]":
    """Map the samples of a copy, shape (samples,) or (samples, 2), int16; raises as `read_header` does."""
    header = read_header(path)
    shape = (header.samples,) if header.sides == 1 else (header.samples, header.sides)
    return np.memmap(path, dtype="<i2", mode="r", offset=header.data_offset, shape=shape)


def read_sides(path: Path, start: int, most: int) -> tuple[NDArray[np.int16], int]:
    """Read `most` samples of each side or what there is from `start` on, shape (sides, n).

    Returned with them: the samples of each side in the whole copy. Read and not mapped: a whole day's map
    would count against a process's memory limit.
    """
    header = read_header(path)
    count = max(0, min(most, header.samples - start)) * header.sides
    offset = header.data_offset + start * header.sides * SAMPLE_BYTES
    samples = np.fromfile(path, "<i2", count, offset=offset)
    if len(samples) != count:
        raise DamagedCopy(f"{path.name} became shorter while it was read")
    return samples.reshape(-1, header.sides).T, header.samples


def _header(samples: int, sides: int) -> bytes:
    data = _CHUNK.size + samples * sides * SAMPLE_BYTES
    whole = _HEADER_BYTES - _CHUNK.size + data + -data % _ALIGNMENT
    ours = next(fields for fields, number in _OURS.items() if number == sides)
    form = _CHUNK.pack(_FMT, _CHUNK.size + _FORMAT.size) + _FORMAT.pack(*ours)
    return _CHUNK.pack(_RIFF, whole) + _WAVE + form + _CHUNK.pack(_DATA, data)


def _read_chunk(raw: bytes, path: Path) -> tuple[bytes, int]:
    if len(raw) < _CHUNK.size:
        raise DamagedCopy(f"{path.name} ends before its samples begin")
    name, length = _CHUNK.unpack(raw)
    if length < _CHUNK.size:
        raise DamagedCopy(f"{path.name} has a part that is shorter than its own name")
    return name, length


def _read_sides(raw: bytes, path: Path) -> int:
    sides = _OURS.get(_FORMAT.unpack(raw)) if len(raw) == _FORMAT.size else None
    if sides is None:
        raise DamagedCopy(f"{path.name} is not 16 kHz with 16-bit samples, of one side or two")
    return sides

"""What a RIFF or Wave64 file says of its own length, where FFmpeg does not believe it.

A WAV that was cut short says how long it was before, and FFmpeg guesses a length from what is left. A size
that a recorder puts in for "not known yet" is no length.
"""

import struct
from typing import Protocol

_MOST_CHUNKS = 64
_RIFF = struct.Struct("<4sI")
_W64 = struct.Struct("<16sQ")
_FORMAT = struct.Struct("<HHIIHH")
_SIZES64 = struct.Struct("<QQ")
_W64_START = b"riff" + bytes.fromhex("2e91cf11a5d628db04c10000")
_WAV_STARTS = (b"RIFF", b"RF64", b"BW64")
_IN_DS64 = 0xFFFFFFFF
_LEEWAY = 0x1000  # recorders put in the largest size there is, signed or not, less a header


class Readable(Protocol):
    """A file as far as it is needed here."""

    def read(self, size: int) -> bytes:
        """Return up to so many bytes."""

    def seek(self, offset: int, whence: int) -> int:
        """Go to a place; negative for one that no file has."""


def declared_seconds(file: Readable) -> float | None:
    """Return the length that the file's own header gives; None where it gives none that can be meant."""
    file.seek(0, 0)
    start = file.read(40)
    if start[:4] in _WAV_STARTS and start[8:12] == b"WAVE":
        return _Chunks(file, _RIFF, 12, 2).seconds()
    if start[:16] == _W64_START:
        return _Chunks(file, _W64, 40, 8).seconds()
    return None


class _Chunks:
    """The parts of a file: where the first one is, and to what they are aligned."""

    def __init__(self, file: Readable, head: struct.Struct, first: int, alignment: int) -> None:
        self._file, self._head, self._at, self._alignment = file, head, first, alignment

    def seconds(self) -> float | None:
        bytes_a_second = large = 0
        for _ in range(_MOST_CHUNKS):
            if self._file.seek(self._at, 0) < 0:
                return None
            raw = self._file.read(self._head.size)
            if len(raw) < self._head.size:
                return None
            name, size = self._head.unpack(raw)
            inside = size if self._head is _RIFF else size - self._head.size
            match name[:4]:
                case b"data":
                    return _length(large if size == _IN_DS64 else inside, bytes_a_second)
                case b"fmt ":
                    bytes_a_second = _bytes_a_second(self._file.read(_FORMAT.size))
                case b"ds64":
                    sizes = self._file.read(_SIZES64.size)
                    large = _SIZES64.unpack(sizes)[1] if len(sizes) == _SIZES64.size else 0
                case _:
                    pass
            if inside < 0:
                return None
            self._at += self._head.size + inside + -inside % self._alignment
        return None


def _bytes_a_second(form: bytes) -> int:
    if len(form) < _FORMAT.size:
        return 0
    rate: int = _FORMAT.unpack(form)[3]
    return rate


def _length(size: int, bytes_a_second: int) -> float | None:
    unknown = any(top - _LEEWAY <= size <= top for top in (1 << 31, 1 << 32, 1 << 63, 1 << 64))
    if size <= 0 or unknown or not bytes_a_second:
        return None
    return size / bytes_a_second

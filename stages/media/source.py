"""Opening a file of unknown kind: its bytes say what it is, and only a closed list of kinds is opened.

FFmpeg also reads playlists, and a 35-byte "recording" of that kind makes it read a neighbour's upload or a
file of the machine. So: a closed list of formats, also for whatever a format opens by itself; no protocol at
all, because the bytes come through our own reader; and any wish to open another file is the end.
The name of the file is not shown to FFmpeg, which would believe its extension.
"""

import errno
import logging
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Never, Self

import av
from attrs import frozen
from av.container import InputContainer

from stages.media.riff import declared_seconds
from storage.record import StopCode

# Everything sound is kept in, and nothing that names other files, draws pictures or takes any bytes at all.
FORMATS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,dts,dtshd,eac3,flac,flv,ircam,live_flv,loas,matroska,mlp,mov,mp3,"
    "mpc,mpc8,mpeg,mpegts,mxf,nistsphere,nut,ogg,rm,sox,tak,truehd,tta,voc,w64,wav,wtv,wv,xwma"
)

_BUFFER_BYTES = 1 << 16
_ESTIMATED = "Estimating duration from bitrate"


class MediaRefused(Exception):
    """The recording itself cannot be converted, and no other try can help."""

    def __init__(self, code: StopCode, reason: str) -> None:
        """Keep the stop code beside the full reason, which is for the service owner."""
        super().__init__(reason)
        self.code = code
        self.reason = reason


class SourceFile:
    """A regular file as FFmpeg reads it; keeps an I/O error that a demuxer may take for the end of the file.

    `touched` is called at every read: a sign of life also while the demuxer skips what nobody asked for.
    """

    name = ""

    def __init__(self, path: Path, touched: Callable[[], None]) -> None:
        self._file = path.open("rb", buffering=0)
        self._touched = touched
        self.error: OSError | None = None
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            self._file.close()
            raise OSError(errno.EINVAL, "the source is no regular file", str(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end of the file."""
        self._touched()
        try:
            return self._file.read(size)
        except OSError as error:
            self.error = self.error or error
            raise

    def seek(self, offset: int, whence: int) -> int:
        """Go to a place in the file; -1 for a place that no file has, which only a damaged one asks for."""
        try:
            return self._file.seek(offset, whence)
        except OverflowError:  # not even a number the system knows
            return -1
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.EOVERFLOW}:
                return -1
            self.error = self.error or error
            raise

    def rewind(self) -> None:
        """Go back to the beginning, for another opening."""
        self._file.seek(0)

    def tell(self) -> int:
        """Return the place in the file, in bytes."""
        return self._file.tell()

    def raise_own_error(self) -> None:
        """Raise the I/O error that reading met, if any: no verdict on the recording may rest on it."""
        if self.error is not None:
            raise self.error


@frozen(kw_only=True)
class Opened:
    """An open container.

    `estimated`: its length is FFmpeg's guess from the bit rate, and `header_seconds` what a RIFF header says.
    """

    container: InputContainer
    estimated: bool
    header_seconds: float | None


def open_media(source: SourceFile) -> Opened:
    """Open the recording; raises MediaRefused when it is none that we take, OSError when reading fails."""
    header_seconds = declared_seconds(source)
    source.rewind()
    _collect_ffmpegs_words()
    with av.logging.Capture() as said:
        try:
            container = av.open(
                source,
                mode="r",
                container_options={"format_whitelist": FORMATS, "protocol_whitelist": "none"},
                metadata_errors="ignore",
                buffer_size=_BUFFER_BYTES,
                io_open=_refuse_to_open,
            )
        except MemoryError:
            raise
        except av.FFmpegError as error:
            source.raise_own_error()
            words = f"no recording of a kind we take: {_words(error)}"
            raise MediaRefused(StopCode.NOT_MEDIA, words) from error
    source.raise_own_error()
    estimated = any(_ESTIMATED in text for _, _, text in said)
    return Opened(container=container, estimated=estimated, header_seconds=header_seconds)


def _refuse_to_open(url: str, flags: int, options: Mapping[str, str]) -> Never:  # noqa: ARG001 - FFmpeg's call
    raise MediaRefused(StopCode.NOT_MEDIA, f"the file asks to read another one: {url[:200]!r}")


def _collect_ffmpegs_words() -> None:
    """Have FFmpeg's last words in its errors and none of them on stderr: a bad file has thousands."""
    av.logging.set_level(av.logging.WARNING)
    av.logging.set_skip_repeated(False)  # else the second opening of a file is not told what the first was
    libav = logging.getLogger("libav")
    libav.handlers, libav.propagate = [logging.NullHandler()], False


def _words(error: av.FFmpegError) -> str:
    words = error.strerror or type(error).__name__
    _, last = av.logging.get_last_error()
    if last is None:
        return words
    said, _, _ = last[2].partition(" '")  # it would go on and recite the whole list above
    return f"{words} ({said.strip()})"

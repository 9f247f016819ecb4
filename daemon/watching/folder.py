"""An account's folder on the disk: what lies in it, and where that is moved; all of it may wait for the disk.

::

    <account>/talk.mp3             waits until it has stopped growing
    <account>/done/talk.mp3        is a record now
    <account>/failed/empty.mp3     can be none
    <account>/failed/empty.mp3.txt why not
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from daemon.watching.stillness import Look, free_name, is_unfinished

DONE, FAILED = "done", "failed"
MOST_FILES = 10_000  # of one folder that are looked at; the others have their turn when these are gone
_LONGEST_NAME = 255  # bytes
_ROOM = 16  # bytes for a number, and for what is put behind the name


class Changed(Exception):
    """The file is not what was seen: it has grown, was replaced, or is gone."""


def accounts_in(root: Path) -> list[Path]:
    """Return the folders that lie in the watch folder."""
    with os.scandir(root) as entries:
        return sorted(
            Path(entry.path)
            for entry in entries
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
        )


def files_in(folder: Path) -> dict[Path, Look]:
    """Return the ordinary files of a folder as they look now; links lead to nobody else's file."""
    with os.scandir(folder) as entries:
        wanted = (entry for entry in entries if not is_unfinished(entry.name))
        looks = ((Path(entry.path), _look_of(entry)) for entry in wanted)
        return dict(islice(((path, look) for path, look in looks if look is not None), MOST_FILES))


@contextmanager
def opened(path: Path, look: Look) -> Iterator[int]:
    """Have a file open for reading that looks as it did; raises Changed for any other."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise Changed from error
    try:
        check(fd, look)
        yield fd
    finally:
        os.close(fd)


def check(fd: int, look: Look) -> None:
    """Raise Changed for a file that does not look as it did."""
    now = os.fstat(fd)
    if not stat.S_ISREG(now.st_mode) or _look(now) != look:
        raise Changed


def move(path: Path, look: Look, into: str, *, because: str = "") -> None:
    """Move a file that looks as it did into a folder beside it, with what there is to say about it.

    Raises Changed where there is another file now, which has a turn of its own. Whoever may write here may be
    somebody else than we: no link of theirs leads us out of the folder.
    """
    with _folder(path.parent) as here:
        _make(into, here)
        with _folder(Path(into), dir_fd=here) as there:
            with os.scandir(there) as entries:
                name = free_name(_short(path.name), {entry.name for entry in entries})
            try:
                now = os.stat(path.name, dir_fd=here, follow_symlinks=False)
            except FileNotFoundError as error:
                raise Changed from error
            if _look(now) != look:
                raise Changed
            os.rename(path.name, name, src_dir_fd=here, dst_dir_fd=there)
            if because:
                new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                with os.fdopen(
                    os.open(f"{name}.txt", new, 0o644, dir_fd=there), "w", encoding="utf-8"
                ) as file:
                    file.write(f"{because}\n")


def _make(folder: str, inside: int) -> None:
    try:
        os.mkdir(folder, dir_fd=inside)
    except FileExistsError:
        return  # whatever it is, `_folder` looks


@contextmanager
def _folder(path: Path, *, dir_fd: int | None = None) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def _look_of(entry: "os.DirEntry[str]") -> Look | None:
    """Return what an entry looks like; None for what is no ordinary file, or gone since."""
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return _look(found) if stat.S_ISREG(found.st_mode) else None


def _look(found: os.stat_result) -> Look:
    return Look(inode=found.st_ino, size=found.st_size, changed_ns=found.st_mtime_ns)


def _short(name: str) -> str:
    """Return a name with room for something behind it."""
    encoded = os.fsencode(name)
    if len(encoded) <= _LONGEST_NAME - _ROOM:
        return name
    suffix = os.fsencode(Path(name).suffix)[:_ROOM]
    return os.fsdecode(encoded[: _LONGEST_NAME - _ROOM - len(suffix)]) + os.fsdecode(suffix)

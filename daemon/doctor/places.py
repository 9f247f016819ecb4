"""The state folder and what is in it: whose it is, whether it can be used, how much room there is."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from daemon.doctor.finding import Finding, fault, note, ok
from storage.folder import StateFolder

_LEAST_FREE_BYTES = 256 * 2**20  # below it the service itself closes the lane of conversions
_SCARCE_BYTES = 5 * 2**30
_SCARCE_SHARE = 0.05
_LEAST_FREE_FILES = 1000
_GIB = 2**30


@frozen(kw_only=True)
class Room:
    """Of a disk: bytes and files, free and in all; file systems without a bound on files say 0 of 0."""

    free: int
    total: int
    files_free: int
    files_total: int


def holder_of(folder: StateFolder) -> str | None:
    """Return the process that owns the folder, None where nobody does; the folder is not made for that."""
    try:
        descriptor = os.open(folder.lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "just starting"
    finally:
        os.close(descriptor)
    return None


def check_folders(folder: StateFolder) -> Iterator[Finding]:
    """Look at the state folder and its rooms."""
    if not folder.path.exists():
        yield _check_absent(folder.path)
        return
    if (wrong := _check_place(folder.path)) is not None:
        yield wrong
        if not os.access(folder.path, os.R_OK | os.X_OK, effective_ids=True):
            return
    rooms = [each for each in (folder.postgres, folder.store, folder.models, folder.owed) if each.exists()]
    faults = [found for place in rooms if (found := _check_place(place))]
    yield from faults
    if wrong is None and not faults:
        holder = holder_of(folder)
        yield ok("state folder", f"{folder.path}, in use by {f'process {holder}' if holder else 'nobody'}")
    owed = (
        len(list(folder.owed.iterdir()))
        if os.access(folder.owed, os.R_OK | os.X_OK, effective_ids=True)
        else 0
    )
    if owed:
        yield note(
            "state folder",
            f"{owed} attempts are owed to the database by an earlier stop",
            "nothing to do: the next start gives them back",
        )


def check_space(folder: StateFolder) -> Finding:
    """Look at the disk that the state folder is on, or will be."""
    place = next(each for each in (folder.path, *folder.path.parents) if each.exists())
    use, files = shutil.disk_usage(place), os.statvfs(place)
    return judge_space(
        folder.path,
        Room(free=use.free, total=use.total, files_free=files.f_favail, files_total=files.f_files),
    )


def judge_space(path: Path, room: Room) -> Finding:
    """Say whether recordings have room; each takes its own size, and 110 MB an hour while it is worked on."""
    told = f"{room.free / _GIB:.1f} GiB of {room.total / _GIB:.1f} GiB are free for {path}"
    remedy = (
        "make room on this disk, or move the state folder to a larger one (--state, or state in the settings)"
    )
    if room.free < _LEAST_FREE_BYTES:
        return fault("space", f"{told}: no recording can be converted", remedy)
    if room.files_total and room.files_free < _LEAST_FREE_FILES:
        return fault("space", f"the disk of {path} has room for {room.files_free} more files", remedy)
    if room.free < _SCARCE_BYTES or room.free < _SCARCE_SHARE * room.total:
        return note("space", told, remedy)
    return ok("space", told)


def _check_absent(path: Path) -> Finding:
    above = next(each for each in path.parents if each.exists())
    if not os.access(above, os.W_OK | os.X_OK, effective_ids=True):
        return fault(
            "state folder",
            f"{path} is not there, and you may not make it in {above}",
            "make it as root and give it to this user, or choose another with --state",
        )
    return note("state folder", f"{path} is not there yet", "nothing to do: the first start makes it")


def _check_place(place: Path) -> Finding | None:
    found, me = place.stat(), os.geteuid()
    if not stat.S_ISDIR(found.st_mode):
        return fault("state folder", f"{place} is no folder", "move it away, or choose another with --state")
    if me not in (0, found.st_uid):
        return fault(
            "state folder",
            f"{place} belongs to user {found.st_uid} and this is user {me}",
            "run this as its owner, or choose another with --state",
        )
    if found.st_mode & 0o002:
        return fault("state folder", f"everybody may write into {place}", f"forbid it: chmod o-w {place}")
    if not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        return fault(
            "state folder",
            f"{place} cannot be written",
            f"allow it: chmod u+rwx {place}; or mount its disk for writing",
        )
    return None

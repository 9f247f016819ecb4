"""The recordings named on the command line, looked at before any work is begun."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from daemon.cli.words import file_name
from storage.errors import Refused


def checked_inputs(files: Iterable[Path], *, largest_bytes: int) -> tuple[Path, ...]:
    """Return the files if every one of them can be read and holds something.

    Raises Refused with a sentence a line for each that cannot.
    """
    paths = tuple(files)
    faults = [fault for path in paths for fault in _faults(path, largest_bytes)]
    if faults:
        raise Refused("\n".join(dict.fromkeys(faults)))
    return paths


def _faults(path: Path, largest_bytes: int) -> Iterator[str]:
    name = file_name(path)
    try:
        # Opening a pipe without a writer would wait for one for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        yield f"{name}: {_cause(error)}"
        return
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            yield f"{name}: this is a folder; name the recordings in it"
        elif not stat.S_ISREG(found.st_mode):
            yield f"{name}: this is no regular file; save the recording to one first"
        elif found.st_size == 0:
            yield f"{name}: the file is empty"
        elif found.st_size > largest_bytes:
            yield (
                f"{name}: {found.st_size} bytes are more than intake.largest_bytes allows ({largest_bytes}); "
                "raise that setting or cut the recording"
            )
        else:
            os.pread(descriptor, 1, 0)
    except OSError as error:
        yield f"{name}: {_cause(error)}"
    finally:
        os.close(descriptor)


def _cause(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file"
        case PermissionError():
            return "you may not read this file"
        case _:
            return f"cannot be read ({error.strerror})"

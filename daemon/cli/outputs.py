"""Where transcripts go: stdout, a file, or a folder with a file for each recording; never half a file."""

import os
import secrets
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from daemon.cli.words import file_name, put
from storage.errors import Refused, Unavailable

STDOUT = Path("-")
# Texts and lines of JSON can follow one another; a second subtitle file would be noise in the first.
_CAN_FOLLOW = ("txt", "json")


@frozen
class Outputs:
    """One place for each recording, in the order of the command line; None is stdout."""

    places: tuple[Path | None, ...]


def planned_outputs(inputs: Sequence[Path], form: str, asked: Path | None) -> Outputs:
    """Decide where each transcript goes and make the folder asked for.

    Raises Refused when two transcripts would share a file, or one would replace a recording.
    """
    if asked is None or asked == STDOUT:
        if len(inputs) > 1 and form not in _CAN_FOLLOW:
            raise Refused(
                f"several recordings make several {form} files; name a folder for them with -o FOLDER"
            )
        return Outputs((None,) * len(inputs))
    if len(inputs) > 1 or asked.is_dir() or os.fspath(asked).endswith("/"):
        places = tuple(asked / f"{path.stem}.{form}" for path in inputs)
        _check_apart(inputs, places)
        _make_folder(asked)
    else:
        places = (asked,)
        _check_folder(asked)
    _check_kept(inputs, places)
    return Outputs(places)


def deliver(text: str, place: Path | None) -> None:
    """Put a transcript in its place; a file appears there whole or stays what it was.

    Raises Unavailable when it cannot be written.
    """
    if place is None:
        put(text)
        return
    try:
        _write(text.encode("utf-8", "replace"), place)
    except OSError as error:
        raise Unavailable(
            f"{file_name(place)}: cannot be written ({error.strerror}); choose another -o"
        ) from error


def _write(content: bytes, place: Path) -> None:
    try:
        found = place.stat()
    except FileNotFoundError:
        found = None
    if found is not None and not stat.S_ISREG(found.st_mode):
        # A pipe or a device is written to; renaming a file over it would destroy it.
        with place.open("wb") as stream:
            stream.write(content)
        return
    target = place.resolve()  # a link stays a link
    beside = target.parent / f".rubezh-{secrets.token_hex(8)}"
    try:
        with beside.open("xb") as stream:
            if found is not None:
                os.fchmod(stream.fileno(), stat.S_IMODE(found.st_mode))
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _check_apart(inputs: Sequence[Path], places: Sequence[Path]) -> None:
    distinct = {path.resolve(): place for path, place in zip(inputs, places, strict=True)}
    shared = [place for place, count in Counter(distinct.values()).items() if count > 1]
    if shared:
        raise Refused(
            "\n".join(
                f"{file_name(place)}: two recordings would be written here; run them apart"
                for place in shared
            )
        )


def _check_kept(inputs: Sequence[Path], places: Sequence[Path]) -> None:
    for place in places:
        for path in inputs:
            if place.exists() and place.samefile(path):
                raise Refused(
                    f"{file_name(place)}: the transcript would replace the recording; choose another -o"
                )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{file_name(folder)}: this folder cannot be made ({error.strerror})") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Refused(f"{file_name(folder)}: you may not write to this folder")


def _check_folder(place: Path) -> None:
    folder = place.resolve().parent
    if not folder.is_dir():
        raise Refused(f"{file_name(place)}: there is no folder {file_name(folder)}")
    if not place.exists() and not os.access(folder, os.W_OK | os.X_OK):
        raise Refused(f"{file_name(place)}: you may not write to the folder {file_name(folder)}")

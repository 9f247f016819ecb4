"""The state folder belongs to one process at a time, and to nobody else."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import StateFolderInUse, StateFolderRefused
from storage.folder import StateFolder, default_state_folder
from tests.processes import CHECKOUT, NOBODY, plain_python

HOLDER = """
import sys
from storage.folder import StateFolder
folder = StateFolder(sys.argv[1])
folder.prepare()
with folder.locked():
    print("mine", flush=True)
    sys.stdin.read()
"""


def mode_of(path: Path) -> int:
    """Return a path's permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folders_are_private(tmp_path: Path) -> None:
    """Nobody else sees the audio, the models or what is owed; as root PostgreSQL's user may pass, no more."""
    folder = StateFolder(tmp_path / "deep" / "state")
    folder.prepare()
    folder.prepare()
    assert [mode_of(path) for path in (folder.store, folder.models, folder.owed)] == [0o700] * 3
    as_root = os.geteuid() == 0
    assert mode_of(folder.path) == (0o755 if as_root else 0o700)
    assert mode_of(folder.postgres) == (0o711 if as_root else 0o700)


def test_loosened_folders_are_made_private_again(tmp_path: Path) -> None:
    """Modes are put right at every start."""
    folder = StateFolder(tmp_path)
    folder.prepare()
    folder.store.chmod(0o755)
    folder.prepare()
    assert mode_of(folder.store) == 0o700


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later change of the working folder moves nothing."""
    monkeypatch.chdir(tmp_path)
    assert StateFolder(Path("state")).lock == tmp_path / "state" / "lock"


def test_a_second_process_is_refused_at_once_and_told_who_holds_it(tmp_path: Path) -> None:
    """The sentence names the holder; after its death, by whatever cause, the folder is free."""
    folder = StateFolder(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"mine\n"
        with pytest.raises(StateFolderInUse) as refused, folder.locked():
            pass
        holder.kill()
    in_use = f"the state folder {tmp_path} is in use by process {holder.pid}; "
    assert str(refused.value) == in_use + "stop it or choose another with --state"
    with folder.locked():
        assert folder.lock.read_text() == f"{os.getpid()}\n"


def test_the_lock_is_let_go_with_the_block(tmp_path: Path) -> None:
    """The folder can be owned again, also after an error inside the block."""
    folder = StateFolder(tmp_path)
    with pytest.raises(ZeroDivisionError), folder.locked():
        raise ZeroDivisionError
    with folder.locked():
        pass


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("inside", [".", "store"])
def test_somebody_elses_folder_is_refused(tmp_path: Path, inside: str) -> None:
    """Root does not mix its files into another user's state."""
    folder = StateFolder(tmp_path)
    folder.prepare()
    os.chown(tmp_path / inside, NOBODY, NOBODY)
    with pytest.raises(
        StateFolderRefused, match=f"belongs to user {NOBODY} and this is user 0; run as its owner"
    ):
        folder.prepare()


def test_a_folder_everybody_may_write_into_is_refused(tmp_path: Path) -> None:
    """Where anybody may exchange our folders, nothing of ours is safe."""
    tmp_path.chmod(0o777)
    with pytest.raises(StateFolderRefused, match="chmod o-w"):
        StateFolder(tmp_path).prepare()


def test_a_file_in_the_way_is_told_in_one_sentence(tmp_path: Path) -> None:
    """What the system says is passed on with the path and the remedy."""
    (tmp_path / "state").write_text("")
    with pytest.raises(StateFolderRefused, match=r"cannot be used .*; choose another with --state"):
        StateFolder(tmp_path / "state" / "inner").prepare()


def test_a_folder_we_may_not_make_is_refused(reachable: Path) -> None:
    """A plain user is told the path and the remedy, without a traceback."""
    locked = reachable / "locked"
    locked.mkdir(mode=0o555, exist_ok=True)
    script = (
        "import sys\nfrom storage.errors import StateFolderRefused\nfrom storage.folder import StateFolder\n"
        "try: StateFolder(sys.argv[1]).prepare()\nexcept StateFolderRefused as refused: print(refused)"
    )
    words = [*plain_python(), "-c", script, str(locked / "state")]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"the state folder {locked / 'state'} cannot be used (Permission denied: {locked / 'state'}); "
        "choose another with --state\n"
    )


def test_the_default_follows_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Root's state lives with the system's, a user's where the desktop rules say."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_state_folder() == Path("/var/lib/rubezh")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert default_state_folder() == tmp_path / ".local" / "state" / "rubezh"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    assert default_state_folder() == tmp_path / "x" / "rubezh"


@pytest.mark.parametrize("home", [None, "relative"])
def test_who_has_no_home_is_told_what_to_name(monkeypatch: pytest.MonkeyPatch, home: str | None) -> None:
    """As in a container, where the user is a bare number."""
    nobodys = 2**31 - 5
    monkeypatch.setattr(os, "geteuid", lambda: nobodys)
    monkeypatch.setattr(os, "getuid", lambda: nobodys)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", home)
    with pytest.raises(StateFolderRefused, match=f"user {nobodys} has no home folder .* with --state$"):
        default_state_folder()

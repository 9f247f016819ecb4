"""The check-up of real folders, databases and sockets; after it everything is as it was before."""

import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import trio
from attrs import evolve

from daemon.doctor import Finding, State, examine
from daemon.doctor.doors import check_doors
from daemon.doctor.places import check_folders, holder_of
from daemon.doctor.recogniser import check_model
from daemon.doctor.units import check_units
from daemon.settings import DatabaseSettings, IntakeSettings, Settings, WhisperSettings
from storage.database import open_database, open_loop
from storage.folder import StateFolder
from storage.migrate import migrate
from storage.mounting import mount_store


@pytest.fixture
def own(reachable: Path) -> Iterator[Path]:
    """A folder of this test's own that other users may pass through."""
    folder = reachable / "examined"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def settings_at(state: Path, dsn: str = "") -> Settings:
    """Return the usual settings with this state folder and database."""
    return Settings(state=state, database=DatabaseSettings(dsn=dsn))


def examined(settings: Settings) -> dict[str, Finding]:
    """Return the last finding of each check."""
    return {found.check: found for found in trio.run(examine, settings)}


def everything_in(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return what is in a folder, with modes, sizes and times."""
    found = {str(path): path.lstat() for path in sorted(folder.rglob("*"))}
    return {name: (each.st_mode, each.st_size, each.st_mtime_ns) for name, each in found.items()}


async def _prepare(dsn: str, folder: StateFolder) -> None:
    folder.prepare()
    async with (
        open_loop(),
        open_database(dsn, pool_size=2, call_seconds=20, statement_seconds=10, listen=True) as database,
    ):
        await migrate(database)
        await mount_store(database, folder.store)


def test_nothing_is_made_where_nothing_is(tmp_path: Path) -> None:
    """A machine on which Rubezh was never started is well, and stays as it is."""
    found = examined(settings_at(tmp_path / "state"))
    assert all(each.state is not State.FAULT for each in found.values()), found
    assert "not there yet" in found["state folder"].told
    assert "no data yet" in found["database"].told
    assert not list(tmp_path.iterdir())


def test_a_whole_installation_is_well_and_unchanged(tmp_path: Path, dsn: str) -> None:
    """Server, schema, store and clock are told; neither folder nor schema is touched."""
    folder = StateFolder(tmp_path / "state")
    trio.run(_prepare, dsn, folder)
    before = everything_in(tmp_path)
    found = examined(settings_at(folder.path, dsn))
    for check in ("state folder", "database", "clock", "schema", "store", "socket"):
        assert found[check].state is State.OK, found[check]
    assert everything_in(tmp_path) == before


def test_an_empty_database_is_not_given_a_schema(tmp_path: Path, empty_dsn: str) -> None:
    """That is the first start's to do."""
    for _ in range(2):
        assert examined(settings_at(tmp_path, empty_dsn))["schema"].told == "the database is empty"


def test_a_database_that_is_away_is_a_fault(tmp_path: Path) -> None:
    """With the sentence that a start would end with."""
    found = examined(settings_at(tmp_path, f"host={tmp_path} dbname=nobody connect_timeout=2"))["database"]
    assert found.state is State.FAULT
    assert str(tmp_path) in found.told
    assert "database.dsn" in found.remedy


def test_a_role_without_rights_is_a_fault(tmp_path: Path, dsn: str) -> None:
    """What it may not ask is told, and the rest is looked at all the same."""
    role = f"r_{uuid4().hex}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        try:
            found = examined(settings_at(tmp_path, psycopg.conninfo.make_conninfo(dsn, user=role)))
        finally:
            connection.execute(f"DROP ROLE {role}")
    assert found["database"].state is State.OK
    assert found["schema"].state is State.FAULT
    assert "permission denied" in found["schema"].told
    assert "units" in found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_folder_that_one_may_not_look_into_is_a_fault(own: Path) -> None:
    """Everything else is looked at all the same."""
    folder = StateFolder(own / "state")
    folder.prepare()
    folder.path.chmod(0o700)
    os.seteuid(1)
    try:
        found = examined(settings_at(folder.path))
    finally:
        os.seteuid(0)
    assert found["database"].state is State.FAULT
    assert found["state folder"].state is State.FAULT
    assert found["units"].remedy


def test_a_store_of_another_database_is_a_fault(tmp_path: Path, dsn: str, empty_dsn: str) -> None:
    """They are told apart by the installation's id."""
    folder, other = StateFolder(tmp_path / "state"), StateFolder(tmp_path / "other")
    trio.run(_prepare, dsn, folder)
    trio.run(_prepare, empty_dsn, other)
    found = examined(settings_at(folder.path, empty_dsn))["store"]
    assert found.state is State.FAULT
    (folder.store / "store.json").unlink()
    (folder.store / "stray").touch()
    assert "no store of Rubezh" in examined(settings_at(folder.path, dsn))["store"].told


@contextmanager
def held(folder: StateFolder) -> Iterator[None]:
    """Own the folder, as a service does."""
    folder.prepare()
    with folder.locked():
        yield


def test_the_holder_of_the_folder_is_known(tmp_path: Path) -> None:
    """And a check for it neither makes the lock nor holds it."""
    folder = StateFolder(tmp_path / "state")
    assert holder_of(folder) is None
    assert not folder.path.exists()
    with held(folder):
        assert holder_of(folder) == str(os.getpid())
        found = examined(settings_at(folder.path))
        assert found["database"].state is State.FAULT, "its PostgreSQL does not answer"
        assert "has no door" in found["socket"].told
    assert holder_of(folder) is None
    with folder.lock.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_cluster_of_another_version_is_a_fault(own: Path) -> None:
    """Found without starting anything."""
    folder = StateFolder(own / "state")
    folder.prepare()
    data = folder.postgres / "data"
    data.mkdir()
    if os.geteuid() == 0:
        os.chown(data, 65534, 65534)
    assert examined(settings_at(folder.path))["database"].told.endswith("(No such file or directory)")
    (data / "PG_VERSION").write_text("9\n")
    assert "PostgreSQL 9's" in examined(settings_at(folder.path))["database"].told


def test_folders_that_cannot_be_used_are_faults(tmp_path: Path) -> None:
    """Whoever may write into them, and what is none."""
    folder = StateFolder(tmp_path / "state")
    folder.prepare()
    (folder.owed / "something").touch()
    assert [found.state for found in check_folders(folder)] == [State.OK, State.NOTE]
    folder.store.chmod(0o777)
    folder.models.rmdir()
    folder.models.touch()
    told = [found.told for found in check_folders(folder) if found.state is State.FAULT]
    assert told == [f"everybody may write into {folder.store}", f"{folder.models} is no folder"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_somebody_elses_folder_is_a_fault_but_for_root(own: Path) -> None:
    """Root may look for the service's user; others are told whose it is."""
    folder = StateFolder(own / "state")
    folder.prepare()
    for path in (folder.path, *folder.path.iterdir()):
        os.chown(path, 65534, 65534)
    assert [found.state for found in check_folders(folder)] == [State.OK]
    os.seteuid(1)
    try:
        (found,) = [each for each in check_folders(folder) if "belongs to" in each.told][:1]
        assert "user 65534" in found.told
    finally:
        os.seteuid(0)


def test_a_service_that_does_not_answer_is_a_fault(tmp_path: Path) -> None:
    """A socket without a listener, and one that talks nonsense."""
    folder, settings = StateFolder(tmp_path), settings_at(tmp_path)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder.socket))
        (found,) = check_doors(settings, folder, "1")
    assert found.state is State.FAULT
    assert "Connection refused" in found.told


def test_addresses_that_are_taken_are_faults(tmp_path: Path) -> None:
    """A file at the socket's place, a path too long for one, a port that somebody has."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        settings = evolve(settings_at(tmp_path), intake=IntakeSettings(listen=listen))
        (tmp_path / "rubezh.sock").touch()
        taken = list(check_doors(settings, StateFolder(tmp_path), None))
    assert [found.state for found in taken] == [State.FAULT, State.FAULT]
    assert [found.state for found in check_doors(settings, StateFolder(tmp_path / ("x" * 100)), None)] == [
        State.FAULT,
        State.OK,
    ]


def test_a_model_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    """With the sentence of the closed lane."""
    settings = evolve(settings_at(tmp_path), whisper=WhisperSettings(model="/nowhere"))
    found = check_model(settings, tmp_path)
    assert found.state is State.FAULT
    assert "/nowhere" in found.told
    assert found.remedy


def test_systemd_is_asked_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is judged; where it does not answer that is told."""
    monkeypatch.setattr("daemon.doctor.units._BOOTED", tmp_path / "nowhere")
    (found,) = check_units(Settings())
    assert found.state is State.NOTE
    monkeypatch.setattr("daemon.doctor.units._BOOTED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\nexit 1\n")
    systemctl.chmod(0o755)
    (found,) = check_units(Settings())
    assert (found.state, "does not answer" in found.told) == (State.FAULT, True)
    said = "Id=rubezh.service\\nActiveState=failed\\n\\nId=rubezh.socket\\nLoadState=not-found\\n"
    systemctl.write_text(f"#!/bin/sh\nprintf '{said}'\n")
    (found,) = check_units(Settings())
    assert "failed" in found.told

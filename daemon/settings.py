"""Settings: read once from TOML, frozen, every fault reported at once, passed on by name."""

import operator
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import Attribute, field, frozen

from daemon.credentials import CredentialMissing, reveal
from daemon.settings_file import read_file
from daemon.structuring import Faulty, Range, structure
from storage.errors import SettingsRefused, StateFolderRefused
from storage.folder import default_state_folder, home_folder

_HOST_AND_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s:\[\]/]+):(?P<port>[0-9]{1,5})", re.ASCII)
_WEB_ADDRESS = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/?#@]+)(:[0-9]{1,5})?", re.ASCII)
_LAST_PORT = 65535
_LONGEST_SOCKET = 107  # bytes that Linux has for the path of a Unix socket
_DAY = 86400.0


def _address(_instance: object, _field: "Attribute[str]", value: str) -> None:
    match = _HOST_AND_PORT.fullmatch(value)
    if value and not (match and 1 <= int(match["port"]) <= _LAST_PORT):
        raise ValueError(f'must be host:port (like 127.0.0.1:8080 or [::1]:8080) or empty, is "{value}"')


def _socket(_instance: object, _field: "Attribute[str]", value: str) -> None:
    if value and not value.startswith("/"):
        raise ValueError(f'must be an absolute path or empty, is "{value}"')
    if len(os.fsencode(value)) > _LONGEST_SOCKET:
        raise ValueError(f"must be at most {_LONGEST_SOCKET} bytes long, is {len(os.fsencode(value))}")


def _folder(_instance: object, _field: "Attribute[str]", value: str) -> None:
    if value and not value.startswith("/"):
        raise ValueError(f'must be an absolute path or empty, is "{value}"')


def _filled(_instance: object, _field: "Attribute[str]", value: str) -> None:
    if not value.strip():
        raise ValueError("must not be empty")


@frozen(kw_only=True)
class DatabaseSettings:
    """`dsn` empty means the embedded PostgreSQL of the state folder."""

    dsn: str = ""
    pool_size: int = field(default=8, validator=Range(least=2, most=100))
    call_seconds: float = field(default=10.0, validator=Range(above=0, most=600))  # one ordinary call
    statement_seconds: float = field(default=5.0, validator=Range(above=0, most=600))  # the server's own
    listen: bool = True  # off behind a transaction-mode pooler


@frozen(kw_only=True)
class WorkSettings:
    """Workers, claims and attempts."""

    workers: int = field(default=3, validator=Range(least=1, most=64))
    poll_seconds: float = field(default=1.0, validator=Range(above=0, most=60))
    failures_limit: int = field(default=5, validator=Range(least=1, most=1000))
    first_retry_seconds: float = field(default=5.0, validator=Range(least=0, most=_DAY))
    longest_retry_seconds: float = field(default=600.0, validator=Range(least=0, most=_DAY))
    renew_seconds: float = field(default=10.0, validator=Range(above=0, most=3600))
    settle_seconds: float = field(default=900.0, validator=Range(above=0, most=_DAY))
    grace_seconds: float = field(default=5.0, validator=Range(least=0, most=3600))
    exit_seconds: float = field(default=10.0, validator=Range(above=0, most=3600))  # after the grace


@frozen(kw_only=True)
class ConvertSettings:
    """created -> converted."""

    slots: int = field(default=1, validator=Range(least=1, most=64))
    lease_seconds: float = field(default=60.0, validator=Range(above=0, most=_DAY))
    memory_mb: int = field(default=1024, validator=Range(least=256, most=2**20))
    longest_hours: float = field(default=24.0, validator=Range(above=0, most=1000))


@frozen(kw_only=True)
class WhisperSettings:
    """The local recogniser; `model` names a folder or a known model."""

    model: str = field(default="base", validator=_filled)
    slots: int = field(default=1, validator=Range(least=1, most=64))
    threads: int = field(default=0, validator=Range(least=0, most=256))  # 0: the cores shared among the slots
    beam_size: int = field(default=5, validator=Range(least=1, most=20))
    batch_size: int = field(default=8, validator=Range(least=1, most=64))
    lease_seconds: float = field(default=60.0, validator=Range(above=0, most=_DAY))
    memory_mb: int = field(default=3072, validator=Range(least=2048, most=2**20))
    shortest_slice_seconds: float = field(default=120.0, validator=Range(above=0, most=3600))
    longest_slice_seconds: float = field(default=300.0, validator=Range(above=0, most=3600))
    idle_seconds: float = field(default=300.0, validator=Range(least=0, most=_DAY))


@frozen(kw_only=True)
class IntakeSettings:
    """The doors. `socket` empty means `rubezh.sock` in the state folder; `listen` empty means no TCP."""

    socket: str = field(default="", validator=_socket)
    listen: str = field(default="", validator=_address)
    largest_bytes: int = field(default=20 * 2**30, validator=Range(least=1, most=10**15))
    open_uploads: int = field(default=64, validator=Range(least=1, most=10_000))
    account_uploads: int = field(default=16, validator=Range(least=1, most=10_000))
    account_unfinished: int = field(default=100, validator=Range(least=1, most=100_000))
    unfinished_hours: float = field(default=72.0, validator=Range(above=0, most=8760))
    answer_seconds: float = field(default=570.0, validator=Range(above=0, most=_DAY))  # of one OpenAI call
    wrong_tokens: int = field(default=30, validator=Range(least=1, most=100_000))
    queued_hours: float = field(default=1000.0, validator=Range(least=0, most=10**6))  # 0: no limit


def _web_address(_instance: object, _field: "Attribute[str]", value: str) -> None:
    if value and not _WEB_ADDRESS.fullmatch(value):
        raise ValueError(f'must be like https://rubezh.example, without a path, or empty, is "{value}"')


@frozen(kw_only=True)
class PanelSettings:
    """The pages for people. `address` is where browsers find them; empty: wherever they come."""

    address: str = field(default="", validator=_web_address)
    idle_days: float = field(default=14.0, validator=Range(above=0, most=3650))
    longest_days: float = field(default=90.0, validator=Range(above=0, most=3650))


@frozen(kw_only=True)
class WatchSettings:
    """The watch folder, in which each account has a folder of its name; `folder` empty means none."""

    folder: str = field(default="", validator=_folder)
    still_seconds: float = field(default=10.0, validator=Range(least=0, most=_DAY))
    every_seconds: float = field(default=5.0, validator=Range(above=0, most=3600))


@frozen(kw_only=True)
class Settings:
    """Everything that can be set."""

    state: Path = field(factory=default_state_folder)
    database: DatabaseSettings = DatabaseSettings()
    work: WorkSettings = WorkSettings()
    convert: ConvertSettings = ConvertSettings()
    whisper: WhisperSettings = WhisperSettings()
    intake: IntakeSettings = IntakeSettings()
    panel: PanelSettings = PanelSettings()
    watch: WatchSettings = WatchSettings()


def default_file(environment: Mapping[str, str]) -> Path | None:
    """Return the file to read when none is named: RUBEZH_CONFIG's, else the usual one if it exists."""
    if named := environment.get("RUBEZH_CONFIG"):
        return Path(named)
    if os.geteuid() == 0:
        usual = Path("/etc/rubezh/rubezh.toml")
    else:
        base = Path(environment.get("XDG_CONFIG_HOME", ""))
        if not base.is_absolute():
            try:
                base = home_folder() / ".config"
            except StateFolderRefused:  # where there is no home, there is no usual file
                return None
        usual = base / "rubezh" / "rubezh.toml"
    return usual if usual.exists() else None


def load_settings(file: Path | None = None, *, state: Path | None = None) -> Settings:
    """Return the settings of `file` (none: the usual one), with RUBEZH_STATE and then `state` put over it.

    Raises SettingsRefused with every fault at once: unknown names, wrong types, values out of range,
    values that contradict each other.
    """
    file = file or default_file(os.environ)
    raw = read_file(file) if file else {}
    try:
        reveal(raw, os.environ)
    except CredentialMissing as error:
        raise SettingsRefused(f"{file}: {error}") from error
    over = state if state is not None else os.environ.get("RUBEZH_STATE")
    hidden: tuple[str, ...] = ()
    if over:
        if "state" in raw:  # a fault in the file is one also where another state folder is named
            hidden = _faults_of({"state": raw["state"]})
        raw["state"] = str(Path(over).absolute())
    return structure_settings(raw, source=str(file or "the settings"), hidden=hidden)


def structure_settings(raw: dict[str, Any], *, source: str, hidden: tuple[str, ...] = ()) -> Settings:
    """Return plain data as Settings, or raise SettingsRefused naming each fault by its dotted path.

    `hidden` are faults of what is no part of `raw` any more.
    """
    faults = (*_faults_of(raw), *hidden)
    if faults:
        raise _refused(source, tuple(sorted(faults)))
    settings = structure(raw, Settings)
    if faults := tuple(contradictions(settings)):
        raise _refused(source, faults)
    return settings


def _faults_of(raw: dict[str, Any]) -> tuple[str, ...]:
    try:
        structure(raw, Settings)
    except Faulty as error:
        return error.faults
    return ()


def contradictions(settings: Settings) -> Iterator[str]:
    """Return a phrase for each pair of settings that cannot both be meant."""
    work, whisper, database = settings.work, settings.whisper, settings.database
    for stage, lease in (("convert", settings.convert.lease_seconds), ("whisper", whisper.lease_seconds)):
        half = f"half of {stage}.lease_seconds"
        # A renewal may fail once, and the next must still come in time.
        yield from _must("work.renew_seconds", work.renew_seconds, "<", half, lease / 2)
        # A claim whose answer was lost must have ended before its lease could.
        yield from _must("database.statement_seconds", database.statement_seconds, "<", half, lease / 2)
    yield from _must(
        "database.call_seconds",
        database.call_seconds,
        ">=",
        "database.statement_seconds",
        database.statement_seconds,
    )
    yield from _must(
        "work.longest_retry_seconds",
        work.longest_retry_seconds,
        ">=",
        "work.first_retry_seconds",
        work.first_retry_seconds,
    )
    yield from _must(
        "whisper.longest_slice_seconds",
        whisper.longest_slice_seconds,
        ">",
        "whisper.shortest_slice_seconds",
        whisper.shortest_slice_seconds,
    )


_COMPARISONS = {"<": operator.lt, ">=": operator.ge, ">": operator.gt}


def _must(name: str, value: float, sign: str, other: str, bound: float) -> Iterator[str]:
    if not _COMPARISONS[sign](value, bound):
        yield f"{name}: must be {sign} {other} ({bound:g}), is {value:g}"


def _refused(source: str, faults: tuple[str, ...]) -> SettingsRefused:
    if len(faults) == 1:
        return SettingsRefused(f"{source}: {faults[0]}")
    return SettingsRefused("\n  ".join((f"{source}: {len(faults)} faults", *faults)))

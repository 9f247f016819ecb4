"""Secrets that the service manager hands over as files: a setting names one instead of holding it.

Source: systemd.exec(5), LoadCredential= and $CREDENTIALS_DIRECTORY.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

SECRETS: Final = ("database.dsn",)
"""The settings that may be written as `{ credential = "NAME" }`."""

_FOLDER: Final = "CREDENTIALS_DIRECTORY"


class CredentialMissing(Exception):
    """A setting names a credential that cannot be had; the message says which, and how it can."""


def reveal(raw: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Put the secrets in the places of their names; raises CredentialMissing for the first one missing."""
    for setting, table, key in _secret_places(raw):
        match table[key]:
            case {"credential": str(name), **others} if not others:
                table[key] = _read(setting, name, environment.get(_FOLDER))


def _secret_places(raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    for setting in SECRETS:
        section, _, key = setting.partition(".")
        table = raw.get(section)
        if isinstance(table, dict) and key in table:
            yield setting, table, key


def _read(setting: str, name: str, folder: str | None) -> str:
    if not name or "/" in name or name.startswith("."):
        raise CredentialMissing(f'{setting}: must name a credential by its plain name, is "{name}"')
    if folder is None:
        raise CredentialMissing(
            f'{setting}: is in the credential "{name}", and this process was given none; '
            f"have systemd start it with LoadCredential={name}"
        )
    try:
        return (Path(folder) / name).read_text("utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is no text"
        raise CredentialMissing(
            f'{setting}: the credential "{name}" cannot be read ({cause}); put it into /etc/credstore/{name} '
            f"and have LoadCredential={name} in the unit"
        ) from error

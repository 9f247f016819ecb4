"""Secrets that are handed over as files."""

import os
from pathlib import Path

import pytest

from daemon.settings import load_settings
from storage.errors import SettingsRefused


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file that names a credential, and a folder in which there is one."""
    monkeypatch.delenv("RUBEZH_STATE", raising=False)
    given = tmp_path / "given"
    given.mkdir()
    (given / "dsn").write_text("host=db user=rubezh password=s3cret\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(given))
    return tmp_path / "rubezh.toml"


def test_a_setting_may_name_the_credential_that_holds_it(file: Path) -> None:
    """The file holds the name, and the service the secret."""
    file.write_text('[database]\ndsn = { credential = "dsn" }\n')
    assert load_settings(file).database.dsn == "host=db user=rubezh password=s3cret"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'dsn = { credential = "other" }',
            r'"other" cannot be read .*No such file.*/etc/credstore/other',
        ),
        ('dsn = { credential = "../dsn" }', "must name a credential by its plain name"),
        ('dsn = { credential = "" }', "must name a credential by its plain name"),
        ('dsn = { credential = "binary" }', "it is no text"),
        ('dsn = { secret = "dsn" }', "database.dsn: must be"),
        ('pool_size = { credential = "dsn" }', "database.pool_size: must be"),
    ],
)
def test_what_cannot_be_had_is_told_with_its_remedy(file: Path, said: str, told: str) -> None:
    """In one sentence, and without the secret."""
    Path(os.environ["CREDENTIALS_DIRECTORY"], "binary").write_bytes(b"\xff")
    file.write_text(f"[database]\n{said}\n")
    with pytest.raises(SettingsRefused, match=told) as caught:
        load_settings(file)
    assert "s3cret" not in str(caught.value)


def test_without_systemd_the_remedy_is_systemd(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that a person starts by hand is given no credentials."""
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    file.write_text('[database]\ndsn = { credential = "dsn" }\n')
    with pytest.raises(SettingsRefused, match="have systemd start it with LoadCredential=dsn"):
        load_settings(file)

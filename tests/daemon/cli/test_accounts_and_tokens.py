"""Accounts and tokens are handled by name, and a secret is seen once."""

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from daemon.passwords import is_password
from storage.account import Account
from storage.accounts import account_of_secret
from storage.database import Database
from storage.sessions import read_password, use_link

from .conftest import Ran

Rubezh = Callable[..., Ran]


def test_an_account_is_added_once(rubezh: Rubezh) -> None:
    """The second time, and without a name, one is told what to do instead."""
    assert rubezh("account", "add", "anna b") == Ran(
        0, "", "rubezh: account anna b added; give it a token with: rubezh token issue 'anna b'\n"
    )
    assert rubezh("account", "add", "anna b") == Ran(
        2, "", "rubezh: there is an account named 'anna b' already; choose another name\n"
    )
    assert rubezh("account", "add", " ").code == 2
    assert rubezh("account", "add", "a\x1b[2J").code == 2


def test_accounts_are_listed_for_people_and_for_scripts(rubezh: Rubezh) -> None:
    """Results are on stdout, and nothing but results."""
    rubezh("account", "add", "bob")
    rubezh("account", "add", "анна")
    rubezh("account", "disable", "bob")
    listed = rubezh("account", "list")
    assert listed.err == ""
    assert [line.split()[-1] for line in listed.out.splitlines()] == ["NAME", "bob", "анна"]
    by_name = {each["name"]: each for each in rubezh("account", "list", "--json").json}
    assert by_name["анна"]["disabled_at"] is None
    assert by_name["bob"]["disabled_at"].endswith("Z")
    rubezh("account", "enable", "bob")
    assert all(each["disabled_at"] is None for each in rubezh("account", "list", "--json").json)


def test_a_secret_is_the_only_thing_on_stdout_and_opens_the_doors(
    rubezh: Rubezh, on_database: Callable[..., Any]
) -> None:
    """It can be put into a variable as it is; revoked, it opens nothing."""
    rubezh("account", "add", "anna")
    issued = rubezh("token", "issue", "anna", "--name", "laptop", "--expires-days", "3")
    assert issued.code == 0
    secret = issued.out.removesuffix("\n")
    assert secret.startswith("rbz_")
    assert secret not in issued.err
    account = on_database(lambda database: account_of_secret(database, secret))
    assert account.name == "anna"
    (token,) = rubezh("token", "list", "anna", "--json").json
    assert token["name"] == "laptop"
    left = datetime.fromisoformat(token["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=2, hours=23) < left <= timedelta(days=3)
    revoked = rubezh("token", "revoke", token["id"])
    assert revoked == Ran(0, "", f"rubezh: token {token['id']} revoked\n")
    assert on_database(lambda database: account_of_secret(database, secret)) is None
    assert " revoked " in rubezh("token", "list", "anna").out
    assert secret not in rubezh("token", "list", "anna", "--json").out


def test_a_token_has_a_name_that_can_be_shown(rubezh: Rubezh) -> None:
    """Printable, and not without end; nothing is issued otherwise."""
    rubezh("account", "add", "anna")
    for name, told in (
        ("a\nb", "a token's name must be printable letters; give it another --name"),
        ("x" * 201, "a token's name may have 200 letters, this has 201; shorten --name"),
    ):
        assert rubezh("token", "issue", "anna", "--name", name) == Ran(2, "", f"rubezh: {told}\n")
    assert rubezh("token", "list", "anna", "--json").json == []


def test_what_is_not_there_is_told_in_a_sentence(rubezh: Rubezh) -> None:
    """Unknown accounts and tokens are bad input, and the way to the known ones is told."""
    nobody = "rubezh: there is no account named 'bob'; see: rubezh account list\n"
    for arguments in (
        ("account", "disable", "bob"),
        ("account", "enable", "bob"),
        ("token", "issue", "bob"),
        ("token", "list", "bob"),
        ("records", "list", "--account", "bob"),
    ):
        assert rubezh(*arguments) == Ran(2, "", nobody)
    unknown = "01970000-0000-7000-8000-000000000000"
    assert rubezh("token", "revoke", unknown) == Ran(
        2, "", f"rubezh: there is no token {unknown}; see: rubezh token list ACCOUNT\n"
    )


def test_an_account_is_removed_when_nothing_is_left_in_doubt(
    rubezh: Rubezh, record: str, on_database: Callable[..., Any]
) -> None:
    """With records only if it is told what becomes of them, and deleted only by its name."""
    refused = rubezh("account", "remove", "anna")
    assert refused.code == 2
    assert "has 1 record(s); hand them over (--hand-over-to) or delete them by its name" in refused.err
    assert (
        "say --delete-records-of anna"
        in rubezh("account", "remove", "anna", "--delete-records-of", "bob").err
    )
    assert "hand them over to another" in rubezh("account", "remove", "anna", "--hand-over-to", "anna").err
    both = ("--hand-over-to", "bob", "--delete-records-of", "anna")
    assert "give one of the two options" in rubezh("account", "remove", "anna", *both).err
    assert rubezh("account", "remove", "anna", "--hand-over-to", "nobody").code == 2
    rubezh("account", "add", "bob")
    handed = rubezh("account", "remove", "anna", "--hand-over-to", "bob")
    assert handed == Ran(0, "", "rubezh: account anna removed, its 1 record(s) are of bob now\n")
    assert rubezh("records", "list", "--account", "bob", "--json").json[0]["id"] == record
    assert "handed_over" in rubezh("records", "events", record).out
    deleted = rubezh("account", "remove", "bob", "--delete-records-of", "bob")
    assert deleted == Ran(0, "", "rubezh: account bob removed, 1 record(s) deleted\n")
    assert rubezh("account", "list", "--json").json == []
    rubezh("account", "add", "carla")
    assert rubezh("account", "remove", "carla").err == "rubezh: account carla removed\n"
    assert rubezh("account", "remove", "carla").code == 2


def test_an_account_is_given_a_way_into_the_panel(
    rubezh: Rubezh, monkeypatch: pytest.MonkeyPatch, on_database: Any
) -> None:
    """A password from a pipe, a link, and the role that sees the service; each says what it did."""
    assert rubezh("account", "add", "anna", "--owner").code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\nand more\n"))
    ran = rubezh("account", "password", "anna")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "rubezh: account anna has a new password, and is signed out\n"

    async def seen(database: Database) -> tuple[bool, str | None]:
        found = await read_password(database, "anna")
        assert found is not None
        return found[0].is_service_owner, found[1]

    is_owner, kept = on_database(seen)
    assert is_owner
    assert trio.run(is_password, kept, "correct horse")
    assert (
        rubezh("account", "role", "anna", "user").err == "rubezh: account anna sees its own records alone\n"
    )
    assert rubezh("account", "password", "anna", "--none").code == 0
    assert on_database(seen) == (False, None)


def test_a_password_that_is_too_short_is_refused(rubezh: Rubezh, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one sentence, before the database is asked."""
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    ran = rubezh("account", "password", "anna")
    assert ran.code == 2
    assert ran.err == "rubezh: a password has 8 to 1000 letters, this has 5; choose another\n"


def test_a_sign_in_link_leads_to_where_the_panel_is(
    rubezh: Rubezh, tmp_path: Path, dsn: str, on_database: Any
) -> None:
    """To the address that is set; with none, and no TCP, it says what to set. A closed account gets none."""
    rubezh("account", "add", "anna")
    assert "set panel.address" in rubezh("account", "link", "anna").err
    (tmp_path / "rubezh.toml").write_text(
        f'[database]\ndsn = {json.dumps(dsn)}\n[panel]\naddress = "https://rubezh.example"\n'
    )
    ran = rubezh("account", "link", "anna")
    assert ran.out.startswith("https://rubezh.example/sign-in/rbl_")

    async def used(database: Database) -> Account | None:
        return await use_link(database, ran.out.strip().rpartition("/")[2])

    assert on_database(used).name == "anna"
    rubezh("account", "disable", "anna")
    assert "is closed" in rubezh("account", "link", "anna").err

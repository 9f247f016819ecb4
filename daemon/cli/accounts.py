"""`rubezh account`: whom records belong to."""

import sys
from collections.abc import Sequence
from shlex import quote

import attrs
import click

from daemon.cli.opening import with_database
from daemon.cli.options import with_settings
from daemon.cli.person import person
from daemon.cli.words import json_document, moment, put, table, tell, terminal_width
from daemon.passwords import check_password, hash_password
from daemon.settings import Settings
from storage.account import Account
from storage.accounts import (
    Deleted,
    Fate,
    HandedOver,
    add_account,
    disable_account,
    find_account,
    list_accounts,
    remove_account,
    set_role,
)
from storage.database import Database
from storage.errors import Refused
from storage.sessions import make_link, set_password

LINK_SECONDS = 900.0


@click.group(name="account")
def command() -> None:
    """Add, list, disable and remove the accounts that own records."""


@command.command()
@click.argument("name")
@click.option("--owner", "is_owner", is_flag=True, help="Let it see the service as a whole, in the panel.")
@with_settings
def add(settings: Settings, name: str, *, is_owner: bool) -> None:
    """Add an account called NAME."""
    with_database(settings, lambda database: add_account(database, name, is_service_owner=is_owner))
    tell(f"account {name} added; give it a token with: rubezh token issue {quote(name)}")


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
@with_settings
def list_(settings: Settings, *, as_json: bool) -> None:
    """List the accounts."""
    accounts = with_database(settings, list_accounts)
    put(json_document([attrs.asdict(account) for account in accounts]) if as_json else _shown(accounts))


@command.command()
@click.argument("name")
@with_settings
def disable(settings: Settings, name: str) -> None:
    """Close the account NAME: its tokens open nothing.

    Its records are worked on all the same.
    """

    async def work(database: Database) -> None:
        account = await account_named(database, name)
        await disable_account(database, account.id)

    with_database(settings, work)
    tell(f"account {name} disabled; open it again with: rubezh account enable {quote(name)}")


@command.command()
@click.argument("name")
@click.argument("role", type=click.Choice(["owner", "user"]))
@with_settings
def role(settings: Settings, name: str, role: str) -> None:
    """Let the account NAME see the service as a whole (owner), or its own records alone (user)."""

    async def work(database: Database) -> None:
        account = await account_named(database, name)
        await set_role(database, account.id, is_service_owner=role == "owner")

    with_database(settings, work)
    sees = "the service as a whole, too" if role == "owner" else "its own records alone"
    tell(f"account {name} sees {sees}")


@command.command()
@click.argument("name")
@click.option("--none", "is_none", is_flag=True, help="Take the password away: sign-in links alone are left.")
@with_settings
def password(settings: Settings, name: str, *, is_none: bool) -> None:
    """Give the account NAME a password for the panel.

    It is asked for, or read from the first line of a pipe. Everybody signed in by that account is signed out.
    """
    if not is_none:
        given = _asked_password()
        check_password(given)

    async def work(database: Database) -> None:
        account = await account_named(database, name)
        await set_password(database, account.id, None if is_none else await hash_password(given))

    with_database(settings, work)
    tell(f"account {name} has {'no password any more' if is_none else 'a new password'}, and is signed out")


@command.command()
@click.argument("name")
@with_settings
def link(settings: Settings, name: str) -> None:
    """Print a link that signs in to the panel as the account NAME, once, within 15 minutes."""
    address = settings.panel.address or (settings.intake.listen and f"http://{settings.intake.listen}")
    if not address:
        raise Refused(
            "no browser can come: set panel.address to where people find the panel, or intake.listen"
        )

    async def work(database: Database) -> str:
        account = await account_named(database, name)
        if account.disabled_at is not None:
            raise Refused(f"account {name!r} is closed; open it with: rubezh account enable {quote(name)}")
        return await make_link(database, account.id, LINK_SECONDS)

    put(f"{address}/sign-in/{with_database(settings, work)}\n")
    tell(f"this signs in as {name} once, within {LINK_SECONDS // 60:.0f} minutes; give it to nobody else")


@command.command()
@click.argument("name")
@with_settings
def enable(settings: Settings, name: str) -> None:
    """Open the account NAME again."""

    async def work(database: Database) -> None:
        account = await account_named(database, name)
        await disable_account(database, account.id, disabled=False)

    with_database(settings, work)
    tell(f"account {name} enabled")


@command.command()
@click.argument("name")
@click.option("--hand-over-to", metavar="OTHER", help="Let its records be of the account OTHER.")
@click.option(
    "--delete-records-of",
    metavar="NAME",
    help="Delete its records for good, at once; NAME is its name once more.",
)
@with_settings
def remove(settings: Settings, name: str, *, hand_over_to: str | None, delete_records_of: str | None) -> None:
    """Remove the account NAME with its tokens.

    It is refused while the account has records, unless what becomes of them is told.
    """
    if hand_over_to is not None and delete_records_of is not None:
        raise Refused("records are either handed over or deleted; give one of the two options")
    if delete_records_of not in (None, name):
        raise Refused(
            f"the records to be deleted are those of {name!r}; say --delete-records-of {quote(name)}"
        )
    if hand_over_to == name:
        raise Refused("an account that is removed cannot keep its records; hand them over to another")

    async def work(database: Database) -> int:
        account = await account_named(database, name)
        fate: Fate | None = None
        if hand_over_to is not None:
            fate = HandedOver(await account_named(database, hand_over_to), person())
        elif delete_records_of is not None:
            fate = Deleted()
        return await remove_account(database, account, fate)

    records = with_database(settings, work)
    became = (
        f"its {records} record(s) are of {hand_over_to} now"
        if hand_over_to
        else f"{records} record(s) deleted"
    )
    tell(f"account {name} removed" + (f", {became}" if records else ""))


def _asked_password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    given: str = click.prompt("New password", hide_input=True, confirmation_prompt=True, err=True)
    return given


async def account_named(database: Database, name: str) -> Account:
    """Return the account of that name; raises Refused when there is none."""
    account = await find_account(database, name)
    if account is None:
        raise Refused(f"there is no account named {name!r}; see: rubezh account list")
    return account


def _shown(accounts: Sequence[Account]) -> str:
    rows = [(moment(each.created_at), moment(each.disabled_at) or "-", each.name) for each in accounts]
    return table(("CREATED", "DISABLED", "NAME"), rows, width=terminal_width())

"""`rubezh account`: whom records belong to."""

from collections.abc import Sequence
from shlex import quote

import attrs
import click

from daemon.cli.opening import with_database
from daemon.cli.options import with_settings
from daemon.cli.person import person
from daemon.cli.words import json_document, moment, put, table, tell, terminal_width
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
)
from storage.database import Database
from storage.errors import Refused


@click.group(name="account")
def command() -> None:
    """Add, list, disable and remove the accounts that own records."""


@command.command()
@click.argument("name")
@with_settings
def add(settings: Settings, name: str) -> None:
    """Add an account called NAME."""
    with_database(settings, lambda database: add_account(database, name))
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


async def account_named(database: Database, name: str) -> Account:
    """Return the account of that name; raises Refused when there is none."""
    account = await find_account(database, name)
    if account is None:
        raise Refused(f"there is no account named {name!r}; see: rubezh account list")
    return account


def _shown(accounts: Sequence[Account]) -> str:
    rows = [(moment(each.created_at), moment(each.disabled_at) or "-", each.name) for each in accounts]
    return table(("CREATED", "DISABLED", "NAME"), rows, width=terminal_width())

"""`rubezh account`: whom records belong to."""

from collections.abc import Sequence
from shlex import quote

import attrs
import click

from daemon.cli.opening import with_database
from daemon.cli.options import with_settings
from daemon.cli.words import json_document, moment, put, table, tell, terminal_width
from daemon.settings import Settings
from storage.account import Account
from storage.accounts import add_account, disable_account, find_account, list_accounts
from storage.database import Database
from storage.errors import Refused


@click.group(name="account")
def command() -> None:
    """Add, list and disable the accounts that own records."""


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


async def account_named(database: Database, name: str) -> Account:
    """Return the account of that name; raises Refused when there is none."""
    account = await find_account(database, name)
    if account is None:
        raise Refused(f"there is no account named {name!r}; see: rubezh account list")
    return account


def _shown(accounts: Sequence[Account]) -> str:
    rows = [(moment(each.created_at), moment(each.disabled_at) or "-", each.name) for each in accounts]
    return table(("CREATED", "DISABLED", "NAME"), rows, width=terminal_width())

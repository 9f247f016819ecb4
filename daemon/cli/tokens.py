"""`rubezh token`: what senders prove themselves with."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import attrs
import click

from daemon.cli.accounts import account_named
from daemon.cli.opening import with_database
from daemon.cli.options import with_settings
from daemon.cli.words import json_document, moment, put, table, tell, terminal_width
from daemon.settings import Settings
from storage.account import Token
from storage.accounts import MOST_LETTERS, issue_token, list_tokens, revoke_token
from storage.database import Database
from storage.errors import Refused

_LONGEST_DAYS = 36_500


@click.group(name="token")
def command() -> None:
    """Issue, list and revoke the tokens that open the doors."""


@command.command()
@click.argument("account")
@click.option("--name", default="", metavar="TEXT", help="What the token is for.")
@click.option(
    "--expires-days",
    type=click.IntRange(1, _LONGEST_DAYS),
    metavar="DAYS",
    help="Let it open nothing after so many days; without this it holds until it is revoked.",
)
@with_settings
def issue(settings: Settings, account: str, name: str, expires_days: int | None) -> None:
    """Issue a token to ACCOUNT and print its secret, this once."""
    if not name.isprintable():
        raise Refused("a token's name must be printable letters; give it another --name")
    if len(name) > MOST_LETTERS:
        raise Refused(f"a token's name may have {MOST_LETTERS} letters, this has {len(name)}; shorten --name")
    until = None if expires_days is None else datetime.now(UTC) + timedelta(days=expires_days)

    async def work(database: Database) -> tuple[Token, str]:
        owner = await account_named(database, account)
        return await issue_token(database, owner.id, name, until)

    token, secret = with_database(settings, work)
    put(f"{secret}\n")
    tell(f"this secret is shown this once; take the token back with: rubezh token revoke {token.id}")


@command.command()
@click.argument("token", metavar="ID", type=click.UUID)
@with_settings
def revoke(settings: Settings, token: UUID) -> None:
    """Make the token ID open nothing from now on."""
    if with_database(settings, lambda database: revoke_token(database, token)) is None:
        raise Refused(f"there is no token {token}; see: rubezh token list ACCOUNT")
    tell(f"token {token} revoked")


@command.command(name="list")
@click.argument("account")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
@with_settings
def list_(settings: Settings, account: str, *, as_json: bool) -> None:
    """List the tokens of ACCOUNT, never their secrets."""

    async def work(database: Database) -> tuple[Token, ...]:
        owner = await account_named(database, account)
        return await list_tokens(database, owner.id)

    tokens = with_database(settings, work)
    put(json_document([attrs.asdict(token) for token in tokens]) if as_json else _shown(tokens))


def _shown(tokens: Sequence[Token]) -> str:
    rows = [(str(each.id), moment(each.last_used_at) or "never", _state(each), each.name) for each in tokens]
    return table(("ID", "LAST USED", "STATE", "NAME"), rows, width=terminal_width())


def _state(token: Token) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is None:
        return "valid"
    return (
        "expired" if token.expires_at <= datetime.now(UTC) else f"to {token.expires_at.astimezone():%y-%m-%d}"
    )

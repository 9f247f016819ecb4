"""`rubezh records`: the service owner's view of records, and a person's verbs upon them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar
from uuid import UUID

import attrs
import click

from daemon.cli.accounts import account_named
from daemon.cli.opening import with_database
from daemon.cli.options import with_settings
from daemon.cli.person import person
from daemon.cli.service_log import tell_service_log
from daemon.cli.showing import events_table, record_facts, record_json, records_table
from daemon.cli.words import json_document, put, tell
from daemon.settings import Settings
from storage import owner
from storage.claim import NotFound
from storage.database import Database
from storage.errors import Refused
from storage.events import Event, read_events
from storage.owner import Verdict
from storage.readiness import Listed, Readiness, Wanted, list_records, read_readiness
from storage.record import Milestone, StopCode

T = TypeVar("T")

_MOST = 10_000
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
_record = click.argument("record", metavar="ID", type=click.UUID)
Verb = Callable[[Database, UUID, UUID | None, str], Awaitable[Verdict | NotFound]]


@click.group(name="records")
def command() -> None:
    """See what became of records; stop, lift, delete them."""


@command.command(name="list")
@click.option("--account", metavar="NAME", help="Only this account's.")
@click.option("--stopped", is_flag=True, help="Only those that carry the stop flag.")
@click.option(
    "--milestone",
    type=click.Choice([each.value for each in Milestone]),
    metavar="NAME",
    help="Only those at it: created, converted, transcribe or done.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, _MOST),
    default=50,
    show_default=True,
    help="How many at most.",
)
@_as_json
@with_settings
def list_(
    settings: Settings,
    *,
    account: str | None,
    stopped: bool,
    milestone: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List records, the newest first."""
    wanted = Wanted(
        milestone=Milestone(milestone) if milestone else None, stopped=stopped or None, limit=limit
    )

    async def work(database: Database) -> tuple[Listed, ...]:
        owner_id = (await account_named(database, account)).id if account is not None else None
        return await list_records(database, owner_id, wanted)

    listed = with_database(settings, work)
    put(json_document([attrs.asdict(each) for each in listed]) if as_json else records_table(listed))
    if len(listed) == limit:
        tell(f"there may be more than these {limit}; ask for them with --limit")


@command.command()
@_record
@_as_json
@with_settings
def show(settings: Settings, record: UUID, *, as_json: bool) -> None:
    """Show what is known of the record ID, and its text."""
    found = with_database(settings, partial(_read, record))
    put(json_document(record_json(found)) if as_json else record_facts(found))


@command.command()
@_record
@_as_json
@with_settings
def events(settings: Settings, record: UUID, *, as_json: bool) -> None:
    """Show the history of the record ID, the oldest event first."""

    async def work(database: Database) -> tuple[Event, ...]:
        return _known(await read_events(database, record, None))

    history = with_database(settings, work)
    put(json_document([attrs.asdict(each) for each in history]) if as_json else events_table(history))


@command.command()
@_record
@with_settings
def stop(settings: Settings, record: UUID) -> None:
    """Take the record ID out of work until it is lifted."""
    _say(settings, record, owner.stop, "stopped; lift it with: rubezh records lift {id}")
    code = StopCode.STOPPED_BY_OWNER
    tell_service_log("record.stopped", record=record, code=code, by=person(), reason=f"stopped by {person()}")


@command.command()
@_record
@with_settings
def lift(settings: Settings, record: UUID) -> None:
    """Lift the stop flag of the record ID.

    It is ready for work again, and its failures are forgotten.
    """
    _say(settings, record, owner.lift, "lifted; it is ready for work")
    tell_service_log("record.lifted", record=record, by=person())


@command.command()
@_record
@with_settings
def delete(settings: Settings, record: UUID) -> None:
    """Delete the record ID; for some days it can be had back."""
    _say(settings, record, owner.delete, "deleted; have it back with: rubezh records undelete {id}")
    tell_service_log("record.deleted", record=record, by=person())


@command.command()
@_record
@with_settings
def undelete(settings: Settings, record: UUID) -> None:
    """Have the record ID back after its deletion."""
    _say(settings, record, owner.undelete, "undeleted; it goes on where it was")
    tell_service_log("record.undeleted", record=record, by=person())


_UNCHANGED = {
    Verdict.PAST_STOPPING: "is done, so there is nothing to stop",
    Verdict.ALREADY_STOPPED: "is stopped already",
    Verdict.NOT_STOPPED: "is not stopped, so there is nothing to lift",
    Verdict.NOT_DELETED: "is not deleted",
}


def _say(settings: Settings, record: UUID, verb: Verb, done: str) -> None:
    async def work(database: Database) -> Verdict:
        return _known(await verb(database, record, None, person()))

    verdict = with_database(settings, work)
    if verdict is not Verdict.DONE:
        raise Refused(f"record {record} {_UNCHANGED[verdict]}")
    tell(f"record {record} {done.format(id=record)}")


async def _read(record: UUID, database: Database) -> Readiness:
    return _known(await read_readiness(database, record, None))


def _known(found: T | NotFound) -> T:
    if isinstance(found, NotFound):
        raise Refused(f"there is no record {found.record_id}; see: rubezh records list")
    return found

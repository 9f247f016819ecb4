"""`rubezh explain`: why a record is where it is, and what keeps it from being claimed."""

import textwrap
from collections.abc import Iterator
from uuid import UUID

import click

from daemon.cli.opening import with_database
from daemon.cli.options import with_settings
from daemon.cli.words import facts as fact_lines
from daemon.cli.words import json_document, moment, printable, put
from daemon.explain import Condition, Explanation, cause_of, explain, spent_seconds
from daemon.explained import as_plain
from daemon.line import build_line, milestone_limit
from daemon.settings import Settings
from storage.claim import NotFound
from storage.database import Database
from storage.errors import Refused
from storage.explaining import Daemon, Facts, read_facts
from storage.folder import StateFolder
from storage.readiness import MOST_AHEAD

WIDTH = 79
_INDENT = " " * 4


@click.command(name="explain")
@click.argument("record", metavar="ID", type=click.UUID)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
@with_settings
def command(settings: Settings, record: UUID, *, as_json: bool) -> None:
    """Tell why a record does not move.

    It shows where the record is, who holds it, what failed, and what keeps it from being claimed.
    """

    async def work(database: Database) -> Facts:
        found = await read_facts(database, record)
        if isinstance(found, NotFound):
            raise Refused(f"there is no record {record}; see: rubezh records list")
        return found

    facts = with_database(settings, work)
    limit = milestone_limit(build_line(settings, StateFolder(settings.state)), facts.record)
    explanation = explain(facts, limit)
    if as_json:
        put(json_document(as_plain(facts, explanation, limit)))
    else:
        put(told(facts, explanation, limit))


def told(facts: Facts, explanation: Explanation, limit_seconds: float | None) -> str:
    """Return an explanation for a terminal of 80 columns; nothing is cut, long lines go on below."""
    parts = [
        _wrapped(explanation.verdict),
        *(_wrapped(note) for note in explanation.notes),
        "\n",
        fact_lines(_facts(facts, limit_seconds)),
        *_reason(facts),
        *_attempts(facts),
        "\nThe claim's conditions:\n",
        *(_condition(each) for each in explanation.conditions),
        "\nDaemons:\n" if facts.daemons else "",
        *(_daemon(each) for each in facts.daemons),
    ]
    return "".join(parts)


def _facts(facts: Facts, limit_seconds: float | None) -> Iterator[tuple[str, str]]:
    limit = "" if limit_seconds is None else f" of the {limit_seconds:.0f} s it may take"
    stop = facts.stop
    held = ""
    if facts.claimed_by is not None:
        held = f"{facts.claimed_by}, until {moment(facts.lease_until, seconds=True)}"
    yield "id", str(facts.id)
    yield "owner", facts.owner
    yield "file", facts.filename
    yield "created", moment(facts.created_at, seconds=True)
    yield "milestone", f"{facts.milestone}, since {moment(facts.milestone_since, seconds=True)}"
    yield "time at it", f"{spent_seconds(facts):.0f} s of work{limit}"
    yield "lane", facts.lane or ""
    yield "ready since", moment(facts.ready_since, seconds=True)
    yield "queue", "" if facts.ahead is None else _place(facts.ahead)
    yield "held by", held
    yield "due", moment(facts.wake_at, seconds=True)
    yield "failures", str(facts.failures)
    yield "stopped", f"{moment(stop.at, seconds=True)}, {stop.code}" if stop else ""
    yield "stopped by", stop.by if stop else ""
    yield "deleted", moment(facts.deleted_at, seconds=True)


def _place(ahead: int) -> str:
    return f"after {MOST_AHEAD} others or more" if ahead >= MOST_AHEAD else f"number {ahead + 1} in its lane"


def _reason(facts: Facts) -> Iterator[str]:
    if facts.stop is not None:
        yield "\nThe reason of the stop:\n" + _wrapped(facts.stop.reason, _INDENT)


def _attempts(facts: Facts) -> Iterator[str]:
    if facts.attempts:
        yield "\nAttempts since it last came further, the newest first:\n"
    for each in facts.attempts:
        head = f"{moment(each.at, seconds=True)}  {each.kind or ('running' if each.is_running else 'no end')}"
        yield f"  {head}, by {printable(each.by)}\n" + _wrapped(cause_of(each), _INDENT)


def _condition(each: Condition) -> str:
    head = f"  {'yes' if each.holds else 'NO '}  {each.name:<21}  "
    condition = textwrap.fill(each.condition, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
    return f"{condition}\n" + ("" if each.holds else _wrapped(each.why_not, _INDENT + "   "))


def _daemon(each: Daemon) -> str:
    state = f"heard from {each.silent_seconds:.0f} s ago" if each.is_alive else "not alive"
    workers = f"{each.workers} worker{'' if each.workers == 1 else 's'}"
    lanes = "".join(
        _wrapped(
            f"lane {lane.name}: {lane.busy} of {lane.slots} slots busy"
            if lane.closed_because is None
            else f"lane {lane.name}: closed, {lane.closed_because}",
            _INDENT,
        )
        for lane in each.lanes
    )
    return f"  {printable(each.run)}, {state}, {workers}\n{lanes}"


def _wrapped(text: str, indent: str = "") -> str:
    lines = textwrap.wrap(
        printable(text), WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return "\n".join(lines) + "\n"

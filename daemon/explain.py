"""Why a record is where it is, in words: from the facts to conditions and sentences. No I/O.

The conditions are those of the claim's own statement, one by one, in its order. The record's own come first;
those that depend on who claims ask for one live daemon for which all of them hold.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from attrs import frozen

from storage.explaining import Attempt, Daemon, Facts
from storage.readiness import MOST_AHEAD


@frozen(kw_only=True)
class Condition:
    """One condition of the claim: whether it holds for this record, and, if it does not, why not."""

    name: str
    condition: str
    holds: bool
    why_not: str


@frozen(kw_only=True)
class Explanation:
    """`verdict` is one sentence, `conditions` are the claim's, `notes` what else a person should know."""

    verdict: str
    conditions: tuple[Condition, ...]
    notes: tuple[str, ...]

    @property
    def excluded_by(self) -> tuple[str, ...]:
        """Return the names of the conditions that keep the record from being claimed."""
        return tuple(each.name for each in self.conditions if not each.holds)


def explain(facts: Facts, limit_seconds: float | None) -> Explanation:
    """Explain a record; `limit_seconds` is what it may spend at its milestone, None where that is unknown."""
    conditions = (*_own_conditions(facts), *_conditions_of_daemons(facts))
    return Explanation(
        verdict=_verdict(facts, [each for each in conditions if not each.holds]),
        conditions=conditions,
        notes=tuple(_notes(facts, limit_seconds)),
    )


def _own_conditions(facts: Facts) -> Iterator[Condition]:
    stop = facts.stop
    yield Condition(
        name="not stopped",
        condition="stop_code IS NULL",
        holds=facts.is_not_stopped,
        why_not=f"stopped by {stop.by}, {stop.code}: {stop.reason}" if stop else "",
    )
    yield Condition(
        name="not deleted",
        condition="deleted_at IS NULL",
        holds=facts.is_not_deleted,
        why_not=f"deleted {_ago(facts.now, facts.deleted_at)}",
    )
    yield Condition(
        name="not done",
        condition="milestone <> 'done'",
        holds=facts.is_not_done,
        why_not="it is done: there is nothing left to do",
    )
    yield Condition(
        name="due",
        condition="wake_at IS NULL OR wake_at <= now",
        holds=facts.is_due,
        why_not=f"due {_in(facts.now, facts.wake_at)}, at {_moment(facts.wake_at)}",
    )
    yield Condition(
        name="not held",
        condition="lease_until IS NULL OR lease_until <= now",
        holds=facts.is_not_held,
        why_not=f"held by {facts.claimed_by}, whose lease ends {_in(facts.now, facts.lease_until)}",
    )
    yield Condition(
        name="not locked",
        condition="FOR UPDATE SKIP LOCKED",
        holds=facts.is_not_locked is not False,
        why_not="another transaction holds the row; see pg_stat_activity for one that was left open",
    )
    yield Condition(
        name="database takes writes",
        condition="NOT transaction_read_only, NOT in recovery",
        holds=facts.takes_writes,
        why_not="the database is read-only: nobody can claim anything",
    )


def _conditions_of_daemons(facts: Facts) -> Iterator[Condition]:
    if not facts.is_not_done:
        return  # no lane, no stage: whatever daemons do, they are not the reason
    alive = [each for each in facts.daemons if each.is_alive]
    claiming = [each for each in alive if each.workers]
    mounted = [each for each in claiming if each.has_store]
    able = [each for each in mounted if each.has_stage]
    yield Condition(
        name="a daemon claims",
        condition="a sign of life within three beats, from one with workers",
        holds=bool(claiming),
        why_not=_nobody_claims(facts, alive),
    )
    yield Condition(
        name="store mounted",
        condition="store_id = ANY (stores), of a daemon that claims",
        holds=bool(mounted),
        why_not=f"no daemon that claims has mounted store {facts.store_id}",
    )
    yield Condition(
        name="stage known",
        condition="milestone = ANY (milestones), of such a daemon",
        holds=bool(able),
        why_not=f"no such daemon has a stage for records at {facts.milestone}",
    )
    yield Condition(
        name="lane free",
        condition="lane = ANY (free lanes) OR failures >= limit, of such a daemon",
        holds=any(each.has_free_lane or each.needs_no_lane for each in able),
        why_not=_no_lane(facts.lane, able),
    )


def _nobody_claims(facts: Facts, alive: Sequence[Daemon]) -> str:
    if alive:
        return f"{alive[0].run} is alive and claims nothing: it is stopping"
    if facts.daemons:
        last = facts.daemons[0]
        return f"no daemon is alive; {last.run} was the last, heard from {_span(last.silent_seconds)} ago"
    return "no daemon is alive; start one with: rubezh serve"


def _no_lane(name: str | None, able: Sequence[Daemon]) -> str:
    if not able:
        return f"there is no daemon whose lane {name} could be free"
    said = []
    for daemon in able:
        lane = next((each for each in daemon.lanes if each.name == name), None)
        if lane is None:
            said.append(f"{daemon.run} has no lane {name}")
        elif lane.closed_because is not None:
            said.append(f"lane {name} of {daemon.run} is closed: {lane.closed_because}")
        else:
            said.append(f"lane {name} of {daemon.run} is busy, {lane.busy} of {lane.slots} slots")
    return "; ".join(said)


def _verdict(facts: Facts, excluded: Sequence[Condition]) -> str:
    return _of_the_record(facts) or _of_the_queue(facts, excluded)


def _of_the_record(facts: Facts) -> str | None:
    """Say what state the record is in; None when it is ready."""
    verdict = None
    if not facts.is_not_deleted:
        verdict = f"It is deleted. Have it back with: rubezh records undelete {facts.id}"
    elif facts.stop is not None:
        verdict = f"It is stopped until a person lifts it with: rubezh records lift {facts.id}"
    elif not facts.is_not_done:
        verdict = "It is done."
    elif not facts.is_not_held:
        verdict = f"It is being worked on by {facts.claimed_by}, since {_moment(facts.claimed_at)}."
    elif not facts.is_due:
        why = "to be tried again after a failure" if facts.failures else "for its stage to go on"
        verdict = f"It waits {why}, and is due {_in(facts.now, facts.wake_at)}."
    return verdict


def _of_the_queue(facts: Facts, excluded: Sequence[Condition]) -> str:
    """Say of a ready record why it is not claimed yet."""
    if excluded:
        return f"It is ready and not claimed: {excluded[0].why_not}."
    if facts.ahead:
        many = f"{MOST_AHEAD} or more" if facts.ahead >= MOST_AHEAD else str(facts.ahead)
        are = "is" if facts.ahead == 1 else "are"
        return f"It is ready, and {many} {are} before it in lane {facts.lane}."
    return f"It is ready and the next in lane {facts.lane}: whoever claims next takes it."


def _notes(facts: Facts, limit_seconds: float | None) -> Iterator[str]:
    if not facts.is_not_held and not _holder_lives(facts):
        yield (
            f"{facts.claimed_by} gives no sign of life; unless it does, the record is anybody's when the "
            f"lease ends {_in(facts.now, facts.lease_until)}."
        )
    if facts.is_not_held and facts.claimed_by is not None and facts.is_not_stopped:
        yield (
            f"The lease of {facts.claimed_by} ran out {_ago(facts.now, facts.lease_until)}: "
            "it died or lost its database. The failure stays counted."
        )
    last = next((each for each in facts.attempts if not each.is_running), None)
    if last is not None and facts.failures:
        yield f"The last failure: {cause_of(last)}."
    needing = [each for each in facts.daemons if each.is_alive and each.needs_no_lane]
    if needing and facts.is_ready:
        yield f"Its failures have reached the limit of {needing[0].failures_limit}: the next claim stops it."
    spent = spent_seconds(facts)
    if limit_seconds is not None and facts.is_not_done and spent > limit_seconds:
        yield (
            f"It has spent {_span(spent)} at {facts.milestone}, more than the {_span(limit_seconds)} it may: "
            "the next claim or settle stops it as overdue."
        )


def spent_seconds(facts: Facts) -> float:
    """Return the seconds of work at this milestone, those of the claim under way included."""
    if facts.claimed_at is None:
        return facts.milestone_seconds
    return facts.milestone_seconds + max((facts.now - facts.claimed_at).total_seconds(), 0.0)


def cause_of(attempt: Attempt) -> str:
    """Return how an attempt ended, in words."""
    if attempt.is_running:
        return "under way"
    if attempt.kind is None:
        return "it has no end: the process died, or lost its lease"
    return attempt.cause or attempt.kind.replace("_", " ")


def _holder_lives(facts: Facts) -> bool:
    return any(each.run == facts.claimed_by and each.is_alive for each in facts.daemons)


def _in(now: datetime, at: datetime | None) -> str:
    return "never" if at is None else f"in {_span((at - now).total_seconds())}"


def _ago(now: datetime, at: datetime | None) -> str:
    return "never" if at is None else f"{_span((now - at).total_seconds())} ago"


def _moment(at: datetime | None) -> str:
    return "never" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def _span(seconds: float) -> str:
    """Return a length of time in the two units that matter."""
    whole = max(round(seconds), 0)
    if whole < 120:  # noqa: PLR2004 - two minutes: below, seconds say more
        return f"{whole} s"
    return str(timedelta(seconds=whole))

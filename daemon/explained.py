"""An explanation as plain data: what the doors tell the service owner, and `rubezh explain --json` prints."""

from datetime import UTC, datetime
from typing import Any

import attrs

from daemon.explain import Explanation, cause_of, spent_seconds
from storage.explaining import Attempt, Daemon, Facts


def as_plain(facts: Facts, explanation: Explanation, limit_seconds: float | None) -> dict[str, Any]:
    """Return everything that is known: ids and moments as text, seconds as numbers."""
    stop = facts.stop
    return {
        "id": str(facts.id),
        "owner": facts.owner,
        "filename": facts.filename,
        "verdict": explanation.verdict,
        "excluded_by": list(explanation.excluded_by),
        "conditions": [attrs.asdict(each) for each in explanation.conditions],
        "notes": list(explanation.notes),
        "milestone": facts.milestone,
        "milestone_since": _moment(facts.milestone_since),
        "milestone_seconds": round(spent_seconds(facts), 3),
        "milestone_limit_seconds": limit_seconds,
        "lane": facts.lane,
        "created_at": _moment(facts.created_at),
        "ready_since": _moment(facts.ready_since),
        "queue_position": None if facts.ahead is None else facts.ahead + 1,
        "due_at": _moment(facts.wake_at),
        "held": None
        if facts.claimed_by is None
        else {
            "by": facts.claimed_by,
            "since": _moment(facts.claimed_at),
            "until": _moment(facts.lease_until),
            "lease_seconds": facts.lease_seconds,
        },
        "failures": facts.failures,
        "attempts": [_attempt(each) for each in facts.attempts],
        "stop": stop
        and {"code": stop.code, "reason": stop.reason, "by": stop.by, "at": _moment(stop.at)},
        "deleted_at": _moment(facts.deleted_at),
        "daemons": [_daemon(each) for each in facts.daemons],
    }  # fmt: skip


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "at": _moment(attempt.at),
        "by": attempt.by,
        "ended_at": _moment(attempt.ended_at),
        "end": attempt.kind,
        "cause": cause_of(attempt),
        "running": attempt.is_running,
    }


def _daemon(daemon: Daemon) -> dict[str, Any]:
    return {
        "run": daemon.run,
        "host": daemon.host,
        "pid": daemon.pid,
        "alive": daemon.is_alive,
        "started_at": _moment(daemon.started_at),
        "heard_at": _moment(daemon.beat_at),
        "silent_seconds": round(daemon.silent_seconds, 3),
        "workers": daemon.workers,
        "failures_limit": daemon.failures_limit,
        "lanes": [attrs.asdict(each) for each in daemon.lanes],
        "has_store": daemon.has_store,
        "has_stage": daemon.has_stage,
        "has_free_lane": daemon.has_free_lane,
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")

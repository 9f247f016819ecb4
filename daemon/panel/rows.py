"""What a list says of a record, as facts for a template: one place for all that shows records. No I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from attrs import frozen

from daemon.intake.pace import seconds_left
from daemon.panel.words import Words
from daemon.panel.words.numbers import clock, stretch
from storage.readiness import MOST_AHEAD, Readiness
from storage.record import Milestone
from storage.searching import Hit


@frozen(kw_only=True)
class Row:
    """A record in a list; `kind` is one of `stopped`, `done`, `working` and `waiting`."""

    id: UUID
    name: str
    kind: str
    state: str
    reason: str
    description: str
    topics: tuple[str, ...]
    created_at: datetime
    length: float | None
    recognised: float
    fraction: float | None
    progress: str
    left: str
    hits: Sequence[Hit] = ()

    @property
    def is_live(self) -> bool:
        """Tell whether it changes by itself."""
        return self.kind in ("working", "waiting")

    @property
    def can_stop(self) -> bool:
        """Tell whether there is something to stop."""
        return self.is_live

    @property
    def can_lift(self) -> bool:
        """Tell whether there is something to lift."""
        return self.kind == "stopped"


def row_of(readiness: Readiness, words: Words, hits: Mapping[UUID, Sequence[Hit]] | None = None) -> Row:
    """Return what is said of a record."""
    left, kind = seconds_left(readiness), kind_of(readiness)
    length = readiness.audio_seconds
    shows_progress = kind != "done" and readiness.milestone is Milestone.TRANSCRIBE and bool(length)
    moves = shows_progress and kind != "stopped"
    return Row(
        id=readiness.id,
        name=readiness.title or readiness.filename or words.say("records.untitled"),
        kind=kind,
        state=state_of(readiness, words),
        reason="" if readiness.stop is None else words.say(f"stop.{readiness.stop.code}"),
        description=readiness.description,
        topics=readiness.topics,
        created_at=readiness.created_at,
        length=length,
        recognised=readiness.recognised_seconds,
        fraction=readiness.fraction if moves else None,
        progress=_progress(readiness, words) if shows_progress else "",
        left=words.say("progress.left", stretch=stretch_of(left, words))
        if left and kind == "working"
        else "",
        hits=(hits or {}).get(readiness.id, ()),
    )


def kind_of(readiness: Readiness) -> str:
    """Return what is to be seen at a glance."""
    if readiness.stop is not None:
        return "stopped"
    if readiness.milestone is Milestone.DONE:
        return "done"
    return "working" if readiness.held or readiness.recognised_seconds else "waiting"


def state_of(readiness: Readiness, words: Words) -> str:
    """Return in a few words what a record is at."""
    kind, place = kind_of(readiness), readiness.queue_position
    if kind in ("stopped", "done"):
        return words.say(f"state.{kind}")
    if readiness.failures and readiness.wakes_in and not readiness.held:
        return words.say("state.delayed")
    if kind == "working":
        return words.say("state.decoding" if readiness.milestone is Milestone.CREATED else "state.transcribe")
    if place is None:
        return words.say(f"state.{readiness.milestone}")
    far = place > MOST_AHEAD
    return words.say("state.waiting.far" if far else "state.waiting", place=min(place, MOST_AHEAD))


def stretch_of(seconds: float, words: Words) -> str:
    """Return a stretch of time in words."""
    unit, number = stretch(seconds)
    return words.count(f"stretch.{unit}", number)


def _progress(readiness: Readiness, words: Words) -> str:
    whole = readiness.audio_seconds or 0.0
    done = min(readiness.recognised_seconds, whole)
    return words.say("progress.of", done=clock(done), whole=clock(whole))

"""A record's row in the reference model: its columns, and what a stage's findings do to them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, assert_never
from uuid import UUID

from attrs import define, field, fields

from storage.record import (
    Advance,
    Conversion,
    Findings,
    Milestone,
    OperationBegun,
    Record,
    Segment,
    Stop,
    StopCode,
)

BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
BY_HOLDING: Final = ("claim_token", "claimed_by", "claimed_at", "lease_seconds", "lease_until")


def moment(seconds: float) -> datetime:
    """Return a moment of the model's clock, whose zero is `BEGINNING`."""
    return BEGINNING + timedelta(seconds=seconds)


@define(kw_only=True)
class Row:
    """The columns of `records` that the protocol knows; moments are seconds on the model's clock."""

    id: UUID
    owner_id: UUID
    store_id: UUID
    created_at: float
    milestone_since: float
    lane: str | None
    milestone: Milestone = Milestone.CREATED
    milestone_seconds: float = 0.0
    failures: int = 0
    wake_at: float | None = None
    claim_token: UUID | None = None
    claimed_by: str | None = None
    claimed_at: float | None = None
    lease_seconds: float | None = None
    lease_until: float | None = None
    stop_code: str | None = None
    stop_reason: str | None = None
    stopped_at: float | None = None
    stopped_by: str | None = None
    deleted_at: float | None = None
    audio_path: str | None = None
    declared_seconds: float | None = None
    decoded_seconds: float | None = None
    audio_warnings: list[str] = field(factory=list)
    recogniser: str | None = None
    operation: dict[str, Any] | None = None
    found_language: str | None = None
    recognised_seconds: float = 0.0
    recognised_text: str | None = None
    segments: dict[tuple[int, int], Segment] = field(factory=dict)

    @property
    def in_work(self) -> bool:
        """True while the record must still come to an end."""
        return self.stop_code is None and self.deleted_at is None and self.milestone is not Milestone.DONE

    def release(self) -> None:
        """Nobody holds it any more."""
        for column in BY_HOLDING:
            setattr(self, column, None)

    def held_seconds(self, now: float) -> float:
        """Return how long the claim has been held."""
        return 0.0 if self.claimed_at is None else max(now - self.claimed_at, 0.0)

    def stop(self, code: str, reason: str, by: str, now: float) -> None:
        """Set the stop flag."""
        self.stop_code, self.stop_reason, self.stopped_by, self.stopped_at = code, reason, by, now

    def keep(self, findings: Findings) -> None:
        """Write a stage's own columns."""
        match findings:
            case Conversion():
                self.audio_path = findings.audio_path
                self.declared_seconds = findings.declared_seconds
                self.decoded_seconds = findings.decoded_seconds
                self.audio_warnings = list(findings.audio_warnings)
            case OperationBegun():
                self.recogniser, self.operation = findings.recogniser, findings.operation
                self.recognised_seconds, self.recognised_text, self.found_language = 0.0, None, None
            case Advance():
                self.operation, self.found_language = findings.operation, findings.found_language
                self.recognised_seconds = findings.recognised_seconds
                if findings.anew:
                    self.segments = {}
                whole = {segment.slice for segment in findings.segments}
                self.segments = {key: kept for key, kept in self.segments.items() if key[0] not in whole}
                self.segments |= {(new.slice, new.number): new for new in findings.segments}
            case _:
                assert_never(findings)

    def whole_text(self) -> str:
        """Return the text of all segments, in order."""
        return " ".join(self.segments[key].text for key in sorted(self.segments) if self.segments[key].text)

    def as_record(self) -> Record:
        """Return what a read of the row shows."""
        stop = None
        if self.stop_code is not None:
            stop = Stop(
                code=StopCode(self.stop_code),
                reason=str(self.stop_reason),
                at=moment(self.stopped_at or 0.0),
                by=str(self.stopped_by),
            )
        return Record(
            id=self.id,
            owner_id=self.owner_id,
            created_at=moment(self.created_at),
            title="",
            description="",
            topics=(),
            asked_language=None,
            edition=1,
            filename="talk.ogg",
            channels="auto",
            track=None,
            hotwords="",
            translate=False,
            store_id=self.store_id,
            source_path=f"records/{self.id}/source",
            source_bytes=4096,
            source_sha256=bytes(32),
            milestone=self.milestone,
            milestone_since=moment(self.milestone_since),
            milestone_seconds=self.milestone_seconds,
            lane=self.lane,
            failures=self.failures,
            claim_token=self.claim_token,
            lease_until=None if self.lease_until is None else moment(self.lease_until),
            stop=stop,
            deleted_at=None if self.deleted_at is None else moment(self.deleted_at),
            audio_path=self.audio_path,
            declared_seconds=self.declared_seconds,
            decoded_seconds=self.decoded_seconds,
            audio_warnings=tuple(self.audio_warnings),
            recogniser=self.recogniser,
            operation=self.operation,
            found_language=self.found_language,
            recognised_seconds=self.recognised_seconds,
            recognised_text=self.recognised_text,
        )


COLUMNS: Final = tuple(column.name for column in fields(Row) if column.name != "segments")
MOMENTS: Final = frozenset(column for column in COLUMNS if column.endswith(("_at", "_since", "_until")))


def unsent(findings: Findings) -> bool:
    """True when the driver or the server refuses a value before it looks at the claim."""
    match findings:
        case Conversion():
            texts: list[object] = [findings.audio_path, *findings.audio_warnings]
        case OperationBegun():
            texts = [findings.recogniser, findings.operation]
        case Advance():
            texts = [findings.found_language, findings.operation]
        case _:
            assert_never(findings)
    return any("\0" in text for text in _texts(texts))


def unkept(findings: Findings) -> bool:
    """True when a segment cannot be stored: its text, or times that are none."""
    if not isinstance(findings, Advance):
        return False
    return any("\0" in segment.text or not 0 <= segment.start <= segment.end for segment in findings.segments)


def unstorable(detail: object) -> bool:
    """True when facts hold a character that the database has no place for."""
    return any("\0" in text for text in _texts(detail))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)

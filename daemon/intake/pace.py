"""When it is worth while to ask again, from the record's own speed. No I/O."""

import math

from storage.readiness import Readiness
from storage.record import Milestone

SOONEST, LATEST = 1, 60  # seconds
_USUAL_SPEED = 5.0  # seconds of audio a second, of a recognition that has not shown its own yet
_DECODING_SPEED = 100.0
_LATE_SHARE = 10  # what takes longer than was thought is asked for after a tenth of the time it has taken


def ask_again_seconds(readiness: Readiness) -> int | None:
    """Return the seconds after which another poll is worth its while; None when nothing changes by itself.

    That is when the record should be done as far as its own speed tells, no more than LATEST: by then it has
    come further.
    """
    if readiness.milestone is Milestone.DONE or readiness.stop is not None:
        return None
    if readiness.held_seconds is not None:
        left = _seconds_left(readiness) - readiness.held_seconds
        wait = max(left, readiness.held_seconds / _LATE_SHARE)
    elif readiness.wakes_in:
        wait = readiness.wakes_in
    else:
        # Those ahead take a second each at the very least.
        wait = min(float(readiness.queue_position or 1), LATEST / 2)
    return min(max(math.ceil(wait), SOONEST), LATEST)


def seconds_left(readiness: Readiness) -> float | None:
    """Return the seconds of work that are left, by the record's own speed; None before it has shown one.

    A running attempt's time counts: what it has recognised is not told before it ends.
    """
    if speed(readiness) is None or readiness.stop is not None or readiness.audio_seconds is None:
        return None
    return max(_seconds_left(readiness) - (readiness.held_seconds or 0.0), 1.0)


def speed(readiness: Readiness) -> float | None:
    """Return the seconds of audio that became text in a second of work; None before that can be told."""
    if readiness.milestone is not Milestone.TRANSCRIBE or not readiness.recognised_seconds:
        return None
    return readiness.recognised_seconds / max(readiness.milestone_seconds, 0.001)


def _seconds_left(readiness: Readiness) -> float:
    """Return the work that was left when the running attempt began."""
    audio = max(readiness.audio_seconds or 0.0, 0.0)
    recognition = max(audio - readiness.recognised_seconds, 0.0) / (speed(readiness) or _USUAL_SPEED)
    decoding = audio / _DECODING_SPEED if readiness.milestone is Milestone.CREATED else 0.0
    return decoding + recognition

"""Where a decoded piece belongs on the file's own line: pure arithmetic.

Times in the text are times in the file, so sound that starts at 5 s gets 5 s of silence in front, and a hole
in the middle stays a hole. But stamps are a claim of the file: two files joined into one start again from
zero, and a damaged one may point anywhere. So a stamp may only add silence, only where it runs ahead of all
that was decoded before, and only inside the length the file has; what was decoded is never dropped.
The copy is thus never longer than the samples decoded plus the latest stamp believed.
"""

from attrs import frozen

from stages.media.wave64 import RATE

_JITTER_SAMPLES = RATE // 20  # 50 ms: encoder delays and stamps rounded to milliseconds are no gaps


@frozen(kw_only=True)
class Timeline:
    """The file's line: the stamp that is its start, and the last second at which a stamp is believed."""

    zero: float  # seconds
    end: float  # seconds after zero

    def silence_before(self, stamp: float | None, position: float) -> float:
        """Return the samples of silence due before a piece stamped `stamp` (seconds; None: unknown).

        `position` is what has been decoded so far, silence included, in samples.
        """
        if stamp is None:
            return 0.0
        at = stamp - self.zero
        ahead = at * RATE - position
        return ahead if ahead > _JITTER_SAMPLES and at <= self.end else 0.0

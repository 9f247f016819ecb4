"""A stamp may add silence, where it is believed, and can do nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from stages.media.timeline import Timeline
from stages.media.wave64 import RATE

LINE = Timeline(zero=1.5, end=60.0)


def test_silence_fills_up_to_the_stamp() -> None:
    """A piece stamped 4 s after the start of the line, with 1 s decoded, has 3 s of silence before it."""
    assert LINE.silence_before(5.5, 1.0 * RATE) == 3.0 * RATE


def test_no_stamp_is_no_gap() -> None:
    """A piece that does not say when it is follows the last one."""
    assert LINE.silence_before(None, 0.0) == 0.0


def test_a_stamp_behind_adds_nothing() -> None:
    """A line that starts again from zero adds nothing until it is past what was decoded."""
    assert LINE.silence_before(1.5, 30.0 * RATE) == 0.0
    assert LINE.silence_before(-1e12, 30.0 * RATE) == 0.0


def test_a_stamp_past_the_end_adds_nothing() -> None:
    """The end of the line is the last second believed."""
    assert LINE.silence_before(61.5, 0.0) == 60.0 * RATE
    assert LINE.silence_before(61.6, 0.0) == 0.0


STAMPS = st.one_of(st.none(), st.floats(-1e9, 1e9))


@given(st.lists(st.tuples(STAMPS, st.integers(1, 200_000)), max_size=50))
def test_a_copy_is_bounded_whatever_the_stamps_say(pieces: list[tuple[float | None, int]]) -> None:
    """It is never shorter than what was decoded, nor longer than that plus the whole line."""
    position = 0.0
    for stamp, samples in pieces:
        silence = LINE.silence_before(stamp, position)
        assert silence >= 0.0
        position += silence + samples
    heard = sum(samples for _, samples in pieces)
    assert heard <= round(position) <= heard + LINE.end * RATE

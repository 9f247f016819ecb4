"""Boundaries depend on the audio alone, and what the model hears can be put back at its place."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.media.wave64 import RATE
from stages.recognisers.slicing import Bounds, Packed, Samples, Span, cut, widened, within

BOUNDS = Bounds(shortest=4 * RATE, longest=10 * RATE)


@st.composite
def spans(draw: st.DrawFn, length: int = 60 * RATE) -> list[Span]:
    """Spans in order that neither touch nor overlap, somewhere in `length` samples."""
    edges = sorted(draw(st.sets(st.integers(0, length), max_size=24)))
    return list(zip(edges[::2], edges[1::2], strict=False))


def found(speech: list[Span], start: int, length: int) -> list[Span]:
    """What a detector finds in `length` samples from `start` on, when `speech` is in the whole."""
    return [
        (max(a, start) - start, min(b, start + length) - start)
        for a, b in speech
        if b > start and a < start + length
    ]


def boundaries(samples: Samples, speech: list[Span], start: int = 0) -> list[int]:
    """Cut from `start` to the end, as a chain of claims does."""
    ends = [start]
    while ends[-1] < len(samples):
        left = samples[ends[-1] : ends[-1] + BOUNDS.longest + 1]
        ends.append(ends[-1] + cut(left, found(speech, ends[-1], BOUNDS.longest), BOUNDS))
    return ends


@given(spans(), st.integers(0, 60 * RATE), st.integers(0, 2**32 - 1))
def test_s_r4_slices_cover_the_audio_within_their_bounds(speech: list[Span], length: int, seed: int) -> None:
    """Without gap or overlap; only the last one may be shorter than the shortest."""
    samples = np.random.default_rng(seed).integers(-99, 99, length, np.int16)
    edges = boundaries(samples, speech)
    assert edges[0] == 0
    assert edges[-1] == length
    lengths = [b - a for a, b in itertools.pairwise(edges)]
    assert all(BOUNDS.shortest <= one <= BOUNDS.longest for one in lengths[:-1])
    assert all(0 < one <= BOUNDS.longest for one in lengths[-1:])


@given(spans(), st.integers(0, 2**32 - 1), st.data())
def test_s_r4_cutting_again_from_any_boundary_gives_the_same_boundaries(
    speech: list[Span], seed: int, data: st.DataObject
) -> None:
    """A restart changes nothing."""
    samples = np.random.default_rng(seed).integers(-99, 99, 60 * RATE, np.int16)
    edges = boundaries(samples, speech)
    index = data.draw(st.integers(0, len(edges) - 1))
    assert boundaries(samples, speech, edges[index]) == edges[index:]


@given(spans(length=BOUNDS.longest), st.integers(BOUNDS.longest + 1, 2 * BOUNDS.longest))
def test_s_r4_a_cut_lies_in_no_speech_while_there_is_any_pause(speech: list[Span], length: int) -> None:
    """And no pause between the bounds is longer than the one it lies in the middle of."""
    place = cut(np.zeros(length, np.int16), speech, BOUNDS)
    between = np.ones(BOUNDS.longest, bool)
    for start, end in speech:
        between[start:end] = False
    between[: BOUNDS.shortest] = False
    pauses = [len(list(run)) for is_pause, run in itertools.groupby(between.tolist()) if is_pause]
    if not pauses:
        return
    half = max(pauses) // 2
    assert between[place - half : place + half].all()


def test_where_nobody_pauses_the_cut_is_where_it_is_quietest() -> None:
    """A closed mouth is better than the middle of a vowel."""
    samples = np.full(12 * RATE, 8000, np.int16)
    quiet = slice(7 * RATE, 7 * RATE + RATE // 4)
    samples[quiet] = 20
    place = cut(samples, [(0, 10 * RATE)], BOUNDS)
    assert quiet.start < place < quiet.stop


def test_a_drone_is_cut_between_the_bounds_all_the_same() -> None:
    """There is nothing to choose by, and still an end."""
    place = cut(np.full(12 * RATE, 8000, np.int16), [(0, 10 * RATE)], BOUNDS)
    assert BOUNDS.shortest <= place <= BOUNDS.longest


def test_what_fits_in_one_slice_is_one_slice() -> None:
    """A pause in it is no reason to cut."""
    assert cut(np.zeros(10 * RATE, np.int16), [(0, RATE), (6 * RATE, 9 * RATE)], BOUNDS) == 10 * RATE


@pytest.mark.parametrize(("shortest", "longest"), [(0, 5), (6, 5), (-1, -1)])
def test_bounds_without_room_for_a_cut_are_refused(shortest: int, longest: int) -> None:
    """Such settings would never move on."""
    with pytest.raises(ValueError, match="cannot be cut"):
        Bounds(shortest=shortest, longest=longest)


@given(
    spans(), st.integers(0, 60 * RATE), st.integers(0, RATE), st.integers(0, RATE), st.integers(0, 4 * RATE)
)
def test_widened_spans_keep_all_speech_and_stay_apart(
    speech: list[Span], length: int, margin: int, edge: int, pause: int
) -> None:
    """They are in order, inside the slice, and never overlap."""
    speech = within(speech, length)
    wide = widened(speech, length, pause=pause, margin=margin, edge=edge)
    edges = list(itertools.chain.from_iterable(wide))
    assert edges == sorted(edges)
    assert all(0 <= edge <= length for edge in edges)
    assert all(any(a <= start and end <= b for a, b in wide) for start, end in speech)


def test_the_outer_edges_are_wider_than_what_parts_two_spans() -> None:
    """Short pauses stay, long ones lose their middle; at the ends of the slice there is what there is."""
    speech = [(100, 200), (230, 300), (500, 600)]
    assert widened(speech, 1000, pause=50, margin=10, edge=40) == [(60, 310), (490, 640)]
    assert widened(speech, 620, pause=50, margin=10, edge=400) == [(0, 310), (490, 620)]
    assert widened([(100, 200)], 1000, pause=50, margin=10, edge=40) == [(60, 240)]
    assert widened([], 1000, pause=50, margin=10, edge=40) == []


@given(spans())
def test_every_packed_sample_goes_back_to_its_own_place(speech: list[Span]) -> None:
    """Whatever span it came from."""
    packed = Packed(tuple(speech))
    samples = np.arange(60 * RATE, dtype=np.int64)
    pieces = [samples[start:end] for start, end in speech]
    origin = np.concatenate(pieces) if pieces else samples[:0]
    assert packed.length == len(origin)
    for sample in {0, 1, packed.length // 2, packed.length - 1, *packed._ends} & set(range(packed.length)):  # noqa: SLF001 - seams are where it may go wrong
        assert packed.place(sample) == origin[sample]
        assert packed.place(sample + 1, is_end=True) == origin[sample] + 1


def test_an_end_on_a_seam_ends_before_the_pause_and_a_start_begins_after_it() -> None:
    """So no piece of text reaches over a pause by a rounding."""
    packed = Packed(((100, 200), (500, 600)))
    assert (packed.place(100, is_end=True), packed.place(100)) == (200, 500)
    assert (packed.place(-5), packed.place(10_000, is_end=True)) == (100, 600)


def test_stretches_are_parted_by_long_pauses_alone() -> None:
    """Together they are all of the packed speech."""
    packed = Packed(((0, 10), (12, 20), (50, 60)))
    assert packed.stretches(pause=30) == [(0, 18), (18, 28)]
    assert packed.stretches(pause=31) == [(0, 28)]
    assert Packed(()).stretches(pause=1) == []


def test_packed_audio_is_the_spans_side_by_side() -> None:
    """From -1 to 1, as the model wants it."""
    samples = np.array([0, 16384, -32768, 5, 5, 32767], np.int16)
    audio = Packed(((1, 3), (5, 6))).audio(samples)
    assert audio.dtype == np.float32
    assert audio.tolist() == pytest.approx([0.5, -1.0, 1.0], abs=1e-4)

"""No speech is lost silently: what has no text is heard again, and what stays without one is a gap."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest

from stages.media.wave64 import RATE
from stages.recognisers.hearing import Hearing, Manner, Window, WindowText
from stages.recognisers.pieces import HeardWord
from stages.recognisers.slicing import Span
from storage.record import Gap

SPEECH = [(n * 12 * RATE, n * 12 * RATE + 10 * RATE) for n in range(4)]
LENGTH = SPEECH[-1][1]


def samples(speech: Sequence[Span]) -> np.ndarray:
    """Return samples that tell the second they are of: 1 in the first, and so on; 0 where nobody speaks."""
    values = np.zeros(LENGTH, np.int16)
    for start, end in speech:
        values[start:end] = 1 + np.arange(start, end) // RATE
    return values


class Model:
    """Says a word of each second that it hears, but for those it is deaf to in a manner."""

    def __init__(self, deaf: dict[Manner, set[int]], *, loops: bool = False, doubts: bool = False) -> None:
        self.deaf, self.loops, self.doubts = deaf, loops, doubts
        self.asked: list[tuple[Manner, int]] = []

    def __call__(self, windows: Sequence[Window], manner: Manner) -> Iterator[WindowText]:
        """Recognise."""
        for window in windows:
            self.asked.append((manner, len(window)))
            heard = np.rint(window * 32768).astype(int)
            edges = [0, *(np.flatnonzero(np.diff(heard)) + 1), len(heard)]
            words = [
                HeardWord(start=start, end=end, text=f" {heard[start] - 1}", probability=0.9)
                for start, end in pairwise(edges)
                if heard[start] and heard[start] - 1 not in self.deaf.get(manner, set())
            ]
            if self.loops and manner is Manner.FIRST:
                words = [HeardWord(start=n, end=n + 1, text=" you", probability=0.9) for n in range(50)]
            yield WindowText(words=tuple(words), sureness=-2.0 if self.doubts else -0.2, silence=0.1)


def hear(model: Model, **changes: bool) -> tuple[list[int], list[tuple[int, int, Gap]], Hearing]:
    """Return the seconds that have a word, and the gaps in seconds."""
    hearing = Hearing(samples=samples(SPEECH), speech=SPEECH, recognise=model, **changes)
    heard = hearing.hear()
    gaps = [(gap.start // RATE, gap.end // RATE, gap.why) for gap in heard.gaps]
    return [int(word.text) for word in heard.words if word.text.strip().isdigit()], gaps, hearing


ALL = [n for start, end in SPEECH for n in range(start // RATE, end // RATE)]


def test_speech_that_is_heard_at_once_is_heard_once() -> None:
    """Nothing is asked twice."""
    model = Model({})
    assert hear(model)[:2] == (ALL, [])
    assert {manner for manner, _ in model.asked} == {Manner.FIRST}


def test_s_r18_a_sentence_that_was_dropped_is_heard_again_alone() -> None:
    """With nothing but itself in the window."""
    model = Model({Manner.FIRST: {14, 15, 16, 17}})
    assert hear(model)[:2] == (ALL, [])
    again = [length for manner, length in model.asked if manner is Manner.ALONE]
    assert len(again) == 1
    assert again[0] < 8 * RATE


def test_what_nobody_hears_the_second_time_is_heard_otherwise() -> None:
    """A third way, before it is given up."""
    lost = {14, 15, 16, 17}
    model = Model({Manner.FIRST: lost, Manner.ALONE: lost})
    assert hear(model)[:2] == (ALL, [])


def test_what_stays_without_text_is_a_gap() -> None:
    """It says where, and why."""
    lost = {14, 15, 16, 17}
    words, gaps, _ = hear(Model(dict.fromkeys(Manner, lost)))
    assert words == [n for n in ALL if n not in lost]
    ((start, end, why),) = gaps
    assert why is Gap.NO_TEXT
    # The words beside it may be a little off.
    assert abs(start - 14) <= 1
    assert abs(end - 18) <= 1


def test_a_loop_is_dropped_and_heard_again() -> None:
    """What was not said is no text, and the speech under it is not lost."""
    assert hear(Model({}, loops=True))[:2] == (ALL, [])
    deaf = {manner: set(ALL) for manner in (Manner.ALONE, Manner.OTHERWISE)}
    words, gaps, _ = hear(Model(deaf, loops=True))
    assert words == []
    assert {why for _, _, why in gaps} == {Gap.REPETITION}


def test_what_the_model_guesses_is_not_believed() -> None:
    """A text it doubts itself is no text."""
    words, gaps, hearing = hear(Model({}, doubts=True))
    assert words == []
    assert gaps
    assert hearing.hear().dropped


def test_hearing_again_has_a_bound() -> None:
    """A model that is deaf to all costs no more than a part of the slice again, in each manner."""
    model = Model({manner: set(ALL) for manner in Manner})
    words, gaps, _ = hear(model)
    assert words == []
    assert sum(end - start for start, end, _ in gaps) >= len(ALL) - len(SPEECH)
    for manner in (Manner.ALONE, Manner.OTHERWISE):
        assert sum(length for asked, length in model.asked if asked is manner) <= 75 * RATE


@pytest.mark.parametrize("lost", [set(), set(ALL)])
def test_a_translation_is_there_or_not(lost: set[int]) -> None:
    """Its words have no times worth a look."""
    words, gaps, _ = hear(Model(dict.fromkeys(Manner, lost)), follows_speech=False)
    assert (words == ALL) == (not lost)
    assert bool(gaps) == bool(lost)


@pytest.mark.parametrize(("seconds", "gaps"), [(1, 0), (6, 1)])
def test_a_word_that_is_drawn_out_closes_no_long_hole(seconds: int, gaps: int) -> None:
    """Heard again there is but the word beside it: a moment is its end, six seconds are lost speech."""
    speech = [(0, (1 + seconds) * RATE)]

    class Drawn(Model):
        def __call__(self, windows: Sequence[Window], manner: Manner) -> Iterator[WindowText]:
            for window in windows:
                end = len(window) if manner is not Manner.FIRST else (1 + seconds) * RATE
                word = HeardWord(start=0, end=end, text=" so", probability=0.9)
                yield WindowText(words=(word,), sureness=-0.2, silence=0.1)

    hearing = Hearing(samples=samples(SPEECH), speech=speech, recognise=Drawn({}))
    heard = hearing.hear()
    assert len(heard.gaps) == gaps
    assert {word.text for word in heard.words} == {" so"}

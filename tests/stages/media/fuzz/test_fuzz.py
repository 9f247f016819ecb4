"""Whatever bytes come, the converter ends, says something from its closed list, and leaves nothing behind."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings, target
from hypothesis import strategies as st

from stages.media.messages import Channels, Finished
from tests.stages.media.fuzz.harness import Harness, Judged
from tests.stages.media.fuzz.mutations import LONGEST, mutant

MOST_MEMORY = 400  # megabytes: what the worker may hold after any number of files


@pytest.fixture(scope="session")
def whole(shelf: Path) -> list[bytes]:
    """The recordings that are damaged: every one of the shelf, the odd ones too, by their names."""
    return [path.read_bytes()[: 2 * LONGEST] for path in sorted(shelf.iterdir())]


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A folder whose files are in memory, where there is one: each copy is flushed, and no disk is tested."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it is our own
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(prefix="rubezh-", dir=memory) as folder:
        yield Path(folder)


@contextmanager
def naming(seed: int) -> Iterator[None]:
    """Name the seed of what fails."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the recording of seed {seed}")
        raise


def run(seeds: range, seconds: float, whole: list[bytes], folder: Path) -> Counter[str]:
    """Have the recordings of these seeds decoded, for so long; return how often each outcome came."""
    until, found = time.monotonic() + seconds, Counter[str]()
    with Harness(folder) as harness:
        judged: Judged | None = None
        for seed in seeds:
            if time.monotonic() > until:
                break
            with naming(seed):
                judged = harness.judge(mutant(seed, whole), list(Channels)[seed % 3])
            found[judged.kind] += 1
    assert judged is not None
    assert judged.memory < MOST_MEMORY
    return found


def test_s_r10_any_damage_ends_in_a_copy_or_a_verdict(whole: list[bytes], quick: Path) -> None:
    """A few hundred, in some seconds; all of the usual outcomes are among them."""
    found = run(range(400), 120, whole, quick)
    assert min(found["finished"], found["not_media"], found["no_audio"]) > 0


@pytest.mark.deep
def test_s_r10_twenty_thousand_damaged_recordings(whole: list[bytes], quick: Path) -> None:
    """All of them, unless the machine is so slow that an hour does not suffice."""
    found = run(range(1_000, 21_000), 3600, whole, quick)
    print(dict(found))  # noqa: T201 - the record of a deep run
    assert found.total() == 20_000


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """One worker for all examples."""
    with Harness(tmp_path_factory.mktemp("guided")) as harness:
        yield harness


@pytest.mark.deep
def test_s_r10_damage_led_on_by_what_it_reaches(whole: list[bytes], harness: Harness) -> None:
    """The search goes where more of our code is executed, more packets are damaged, more sound comes out."""

    @settings(max_examples=3000, database=None, suppress_health_check=list(HealthCheck))
    @given(
        st.integers(0, len(whole) - 1),
        st.lists(
            st.tuples(st.floats(0, 1), st.integers(0, 64), st.binary(max_size=24)), min_size=1, max_size=12
        ),
        st.floats(0, 1),
        st.sampled_from(Channels),
    )
    def examine(number: int, cuts: list[tuple[float, int, bytes]], kept: float, channels: Channels) -> None:
        data = bytearray(whole[number][:LONGEST])
        for place, removed, put in cuts:
            at = round(place**3 * len(data))  # most of them near the head
            data[at : at + removed] = put
        judged = harness.judge(bytes(data[: round(max(kept, 0.01) * len(data))]), channels, counted=True)
        target(float(judged.lines), label="lines of ours")
        if isinstance(judged.answer, Finished):
            target(float(judged.answer.bad_packets), label="damaged packets")
            target(judged.answer.decoded_seconds, label="seconds")

    examine()

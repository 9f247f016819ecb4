"""Daemons that end with their tests, and the one joined model they all use."""

import io
import os
import shutil
import tempfile
import wave
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from stages.recognisers.models import find_model
from tests.acceptance.rig import Rig
from tests.models import shared_models
from tests.processes import CHECKOUT
from tests.stages.recognisers.speech import decoded

SAMPLES = CHECKOUT / "tests" / "samples"

FAST = {
    "work": {
        "poll_seconds": 0.2,
        "renew_seconds": 0.4,
        "first_retry_seconds": 0.1,
        "longest_retry_seconds": 0.2,
        "grace_seconds": 0.5,
        "exit_seconds": 5.0,
    },
    "convert": {"lease_seconds": 3.0},
    "whisper": {"lease_seconds": 3.0},
    "database": {"statement_seconds": 1.0, "call_seconds": 5.0},
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user may pass through, with a short name: sockets live in it."""
    made = Path(tempfile.mkdtemp(prefix="rz-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def rig(folder: Path, dsn: str) -> Iterator[Rig]:
    """Daemons on a database of this test's own, with short leases and pauses."""
    rig = Rig(folder, dsn, **FAST)
    yield rig
    rig.end()


@pytest.fixture
def make_rig(folder: Path) -> Iterator[Callable[..., Rig]]:
    """Make daemons with further settings, section by section; without a DSN they embed PostgreSQL."""
    made: list[Rig] = []

    def make(dsn: str | None = None, *, name: str = "one", **sections: Mapping[str, object]) -> Rig:
        merged = {part: {**FAST.get(part, {}), **sections.get(part, {})} for part in {*FAST, *sections}}
        (folder / name).mkdir()
        (folder / name).chmod(0o755)
        made.append(Rig(folder / name, dsn, **merged))
        return made[-1]

    yield make
    for rig in made:
        rig.end()


@pytest.fixture
def model(rig: Rig) -> Path:
    """The joined model, in the rig's state folder."""
    return put_model(rig)


@pytest.fixture(scope="session")
def sample() -> bytes:
    """The project's own recording."""
    return (SAMPLES / "milestone.opus").read_bytes()


@pytest.fixture(scope="session")
def reference() -> str:
    """What is said in it."""
    return (SAMPLES / "milestone.txt").read_text("utf-8").strip()


@pytest.fixture(scope="session")
def long_speech() -> bytes:
    """Nearly a minute of the project's own recording, as WAV."""
    samples = np.concatenate([decoded(SAMPLES / "milestone.opus")] * 3)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(samples.tobytes())
    return file.getvalue()


def put_model(rig: Rig) -> Path:
    """Have the joined model in a rig's state folder without joining it again."""
    shared = find_model("base", shared_models())
    rig.state.mkdir(mode=0o755, exist_ok=True)
    (rig.state / "models").mkdir(mode=0o700, exist_ok=True)
    shutil.copytree(shared, rig.state / "models" / "base", copy_function=os.link)
    return rig.state / "models" / "base"

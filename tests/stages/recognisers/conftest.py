"""What the recognisers' tests share: one joined model, and recordings of people where there are any."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stages.recognisers.models import KNOWN, find_model
from storage.errors import MeansAway
from tests.stages.recognisers.speech import decoded, silence, written

PROJECT = Path(__file__).parents[3]
SAMPLE = PROJECT / "tests" / "samples" / "milestone.opus"


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder with the known model in it, joined once on this machine for all sessions of one user."""
    digest = KNOWN["base"].files["model.bin"].sha256
    folder = Path(tempfile.gettempdir()) / f"rubezh-models-{os.getuid()}-{digest[:12]}"
    try:
        find_model("base", folder)
    except MeansAway as away:
        pytest.skip(str(away))
    return folder


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of real recordings that lives beside the project, where it does."""
    folder = Path(os.environ.get("RUBEZH_AUDIO", PROJECT.parent / "shared" / "audio"))
    if not folder.is_dir():
        pytest.skip(f"there are no real recordings at {folder}; name their folder in RUBEZH_AUDIO")
    return folder


@pytest.fixture(scope="session")
def sample() -> NDArray[np.int16]:
    """The samples of the project's own recording, 17.8 s of English."""
    return decoded(SAMPLE)


@pytest.fixture(scope="session")
def said() -> str:
    """What is said in the project's own recording."""
    return SAMPLE.with_suffix(".txt").read_text("utf-8")


@pytest.fixture(scope="session")
def sample_copy(sample: NDArray[np.int16], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recognition copy of the project's own recording."""
    return written(tmp_path_factory.mktemp("sample") / "audio.w64", sample)


@pytest.fixture(scope="session")
def long_copy(sample: NDArray[np.int16], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recognition copy with speech, half a minute of nothing, and speech again."""
    samples = np.concatenate([sample, silence(20), sample])
    return written(tmp_path_factory.mktemp("long") / "audio.w64", samples)

"""A shelf of odd recordings, made once a session."""

from pathlib import Path

import pytest

from tests.stages.media.shelf import fill


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with every recording that `tests.stages.media.shelf` names."""
    folder = tmp_path_factory.mktemp("shelf")
    fill(folder)
    return folder

"""The known model, joined once on this machine for all the sessions of one user."""

import os
import tempfile
from pathlib import Path

import pytest

from stages.recognisers.models import KNOWN, find_model
from storage.errors import MeansAway


def shared_models() -> Path:
    """Return the folder with the known model in it; skips where its wheels are not installed."""
    digest = KNOWN["base"].files["model.bin"].sha256
    folder = Path(tempfile.gettempdir()) / f"rubezh-models-{os.getuid()}-{digest[:12]}"
    try:
        find_model("base", folder)
    except MeansAway as away:
        pytest.skip(str(away))
    return folder

"""A model is found whole and as it should be, or not at all, and then one sentence says what to do."""

import hashlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stages.recognisers import models as under_test
from stages.recognisers.models import KNOWN, File, KnownModel, Part, distrust_model, find_model
from storage.errors import MeansAway

PARTS = {"rubezh_test_part1": b"first half, ", "rubezh_test_part2": b"second half"}
WHOLE = b"first half, second half"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with two packages that carry the parts of the known model `tiny`."""
    folder = tmp_path / "packages"
    for name, content in PARTS.items():
        (folder / name / "data").mkdir(parents=True)
        (folder / name / "__init__.py").touch()
        (folder / name / "data" / "model.bin.part").write_bytes(content)
    monkeypatch.syspath_prepend(str(folder))
    tiny = File(
        parts=tuple(Part(name, "data/model.bin.part") for name in PARTS),
        size=len(WHOLE),
        sha256=hashlib.sha256(WHOLE).hexdigest(),
    )
    monkeypatch.setitem(dict_of_known(), "tiny", KnownModel(files={"model.bin": tiny}, remedy="install it"))
    return folder


def dict_of_known() -> dict[str, KnownModel]:
    """The known models, to be added to."""
    known = under_test.KNOWN
    assert isinstance(known, dict)
    return known


def refusal(setting: str, models: Path) -> str:
    """Return the sentence with which a model is not found."""
    with pytest.raises(MeansAway) as away:
        find_model(setting, models)
    sentence = str(away.value)
    assert "\n" not in sentence
    return sentence


def test_a_known_model_is_joined_once(packages: Path, tmp_path: Path) -> None:
    """The parts are no longer needed then, and nothing else is left in the folder of the models."""
    folder = find_model("tiny", tmp_path / "models")
    assert (folder / "model.bin").read_bytes() == WHOLE
    assert {path.name for path in folder.parent.iterdir()} == {"tiny", ".tiny.lock"}
    (packages / "rubezh_test_part2" / "data" / "model.bin.part").unlink()
    assert find_model("tiny", tmp_path / "models") == folder


def test_a_damaged_part_is_never_accepted(packages: Path, tmp_path: Path) -> None:
    """Nothing half-made stays behind, and the sentence names the package and the remedy."""
    (packages / "rubezh_test_part2" / "data" / "model.bin.part").write_bytes(b"second hal?")
    sentence = refusal("tiny", tmp_path / "models")
    assert "rubezh_test_part2 is damaged; install it" in sentence
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".tiny.lock"]


def test_a_missing_package_is_named(packages: Path, tmp_path: Path) -> None:
    """With what to install."""
    (packages / "rubezh_test_part1" / "data" / "model.bin.part").unlink()
    assert "rubezh_test_part1 is not installed; install it" in refusal("tiny", tmp_path / "models")


def test_a_model_that_lost_bytes_is_made_anew(packages: Path, tmp_path: Path) -> None:
    """So is one of another digest, and one that is distrusted because it would not load."""
    folder = find_model("tiny", tmp_path / "models")
    (folder / "model.bin").write_bytes(WHOLE[:-1])
    assert (find_model("tiny", tmp_path / "models") / "model.bin").read_bytes() == WHOLE

    (folder / "checked.json").write_text(json.dumps({"model.bin": "0" * 64}))
    (folder / "model.bin").write_bytes(WHOLE[::-1])
    assert (find_model("tiny", tmp_path / "models") / "model.bin").read_bytes() == WHOLE

    (folder / "model.bin").write_bytes(WHOLE[::-1])
    distrust_model("tiny", tmp_path / "models")
    assert (find_model("tiny", tmp_path / "models") / "model.bin").read_bytes() == WHOLE


def test_what_a_killed_maker_left_is_swept(packages: Path, tmp_path: Path) -> None:
    """The next one to make the model finds it by its name."""
    left = tmp_path / "models" / ".tiny-abc"
    left.mkdir(parents=True)
    (left / "model.bin").write_bytes(b"half")
    find_model("tiny", tmp_path / "models")
    assert not left.exists()


def test_a_folder_without_write_access_is_told(packages: Path, tmp_path: Path) -> None:
    """A file where the folder should be stands for every such fault, and root meets it as well."""
    (tmp_path / "models").write_text("not a folder")
    assert "cannot be made in" in refusal("tiny", tmp_path / "models")


def test_an_operator_may_name_any_whole_folder(tmp_path: Path) -> None:
    """The sentence about another one says what is missing from it."""
    given = tmp_path / "my model"
    assert f"there is no Whisper model at {given}" in refusal(str(given), tmp_path)
    given.mkdir()
    for name in ("model.bin", "config.json", "vocabulary.json"):
        (given / name).touch()
    assert "tokenizer.json missing" in refusal(str(given), tmp_path)
    (given / "tokenizer.json").touch()
    assert find_model(str(given), tmp_path) == given


MAKE = """
import sys
from pathlib import Path
from stages.recognisers.models import find_model
print(find_model("base", Path(sys.argv[1])))
"""


@pytest.mark.model
def test_the_real_model_survives_a_kill_and_a_race(models: Path, tmp_path: Path) -> None:
    """A maker killed half-way leaves nothing that is taken for a model; two at once make one, whole."""
    command = [sys.executable, "-c", MAKE, str(tmp_path)]
    killed = subprocess.Popen(command)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".base-*/model.bin")):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    killed.kill()
    assert killed.wait(60) == -signal.SIGKILL
    assert not (tmp_path / "base").exists()

    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [racer.communicate(timeout=110)[0].strip() for racer in racers]
    assert told == [str(tmp_path / "base")] * 2
    assert {path.name for path in tmp_path.iterdir()} == {"base", ".base.lock"}
    digest = hashlib.sha256((tmp_path / "base" / "model.bin").read_bytes()).hexdigest()
    assert digest == KNOWN["base"].files["model.bin"].sha256

"""`rubezh doctor`: findings for people and for scripts, and an exit code."""

from collections.abc import Callable
from pathlib import Path

from tests.daemon.cli.conftest import Ran


def test_s_o21_each_finding_has_its_remedy_and_nothing_is_changed(
    rubezh: Callable[..., Ran], tmp_path: Path
) -> None:
    """A line for each, its remedy below it; 0 as long as nothing is a fault."""
    assert rubezh("records", "list").code == 0
    well = rubezh("doctor")
    assert well.code == 0, well
    assert "FAULT" not in well.out
    assert "ok     schema" in well.out
    assert well.err == ""
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    state.chmod(0o777)
    ill = rubezh("doctor")
    assert ill.code == 1
    assert f"FAULT  state folder  everybody may write into {state}\n" in ill.out
    assert f"-> forbid it: chmod o-w {state}\n" in ill.out
    assert state.stat().st_mode & 0o777 == 0o777


def test_scripts_get_json(rubezh: Callable[..., Ran], tmp_path: Path) -> None:
    """Whether all is well, and every finding with the same four members."""
    told = rubezh("doctor", "--json").json
    assert told["well"] is True
    assert {tuple(found) for found in told["findings"]} == {("check", "state", "told", "remedy")}
    (tmp_path / "state").mkdir(mode=0o777)
    (tmp_path / "state").chmod(0o777)
    assert rubezh("doctor", "--json").json["well"] is False

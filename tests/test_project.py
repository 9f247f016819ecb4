"""What the project says about itself is true: its locks, its reasons, its silence about places and hosts."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
RUNNING = PROJECT["project"]["dependencies"] + EXTRAS["embedded"] + PROJECT["build-system"]["requires"]
NEEDED = {
    "run": RUNNING,
    "dev": RUNNING + EXTRAS["dev"],
    "bench": PROJECT["dependency-groups"]["bench"],
    "node": PROJECT["dependency-groups"]["node"],
}
# What the tools leave in the folder is not the project.
NOT_OURS = {".git", ".venv", "build", "dist", "state", "htmlcov", "__pycache__"}
TEXTS = {".py", ".sql", ".md", ".toml", ".txt", ".yaml", ".service", ".conf", ".catalog", ""}
REASON = re.compile(r"(\b\w+\b\W+){2,}")


def locked(purpose: str) -> dict[str, tuple[Requirement, frozenset[str]]]:
    """The requirements of one lock by canonical name, each with the hashes it may have."""
    text = (ROOT / f"locks/{purpose}.txt").read_text().replace("\\\n", " ")
    found: dict[str, tuple[Requirement, frozenset[str]]] = {}
    for line in re.findall(r"^[a-zA-Z0-9].*", text, flags=re.MULTILINE):
        requirement, *hashes = line.split("--hash=")
        parsed = Requirement(requirement)
        found[canonicalize_name(parsed.name)] = parsed, frozenset(each.strip() for each in hashes)
    return found


def texts() -> Iterator[tuple[str, str]]:
    """Every text file of the project with its path from the top."""
    for path in sorted(ROOT.rglob("*")):
        place = path.relative_to(ROOT)
        hidden = {part for part in place.parts[:-1] if part.startswith(".") and part != ".ci"}
        if path.is_file() and path.suffix in TEXTS and not (NOT_OURS | hidden) & set(place.parts):
            if place.parts[0].endswith(".egg-info") or place.name.startswith((".coverage", ".venv")):
                continue
            yield str(place), path.read_text()


@pytest.mark.parametrize("purpose", NEEDED)
def test_lock_holds_everything_that_is_asked_for_in_a_version_that_is_allowed(purpose: str) -> None:
    """What pyproject.toml asks for is in the lock, exactly pinned, within the bounds."""
    lock = locked(purpose)
    for wanted in map(Requirement, NEEDED[purpose]):
        found, _ = lock[canonicalize_name(wanted.name)]
        (pin,) = found.specifier
        assert pin.operator == "=="
        assert wanted.specifier.contains(pin.version), f"{wanted} is locked as {found}"


@pytest.mark.parametrize("purpose", NEEDED)
def test_everything_in_a_lock_is_checked_by_its_hash(purpose: str) -> None:
    """No line of a lock goes without an exact version and a SHA-256."""
    for requirement, hashes in locked(purpose).values():
        assert str(requirement.specifier).startswith("=="), requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), requirement


def test_tests_run_on_the_versions_that_are_run() -> None:
    """The lock for running is a part of the one for development, down to the hashes."""
    run, dev = locked("run"), locked("dev")
    assert {name: dev[name] for name in run} == run


def test_what_is_measured_beside_us_changes_no_version_of_ours() -> None:
    """What both locks name they name alike, down to the hashes."""
    bench, dev = locked("bench"), locked("dev")
    shared = set(bench) & set(dev)
    assert "psycopg" in shared
    assert {name: bench[name] for name in shared} == {name: dev[name] for name in shared}


@pytest.mark.parametrize("unwanted", ["python-daemon", "torch"])
def test_locks_leave_out_what_would_do_harm(unwanted: str) -> None:
    """One owns the import name of a package of ours, the other weighs gigabytes and nothing needs it."""
    assert all(unwanted not in locked(purpose) for purpose in NEEDED)


def test_locks_bind_nobody_to_a_place() -> None:
    """A lock names no index, no folder and no address, so that everyone's own mirror serves."""
    for purpose in NEEDED:
        text = (ROOT / f"locks/{purpose}.txt").read_text()
        assert not re.search(r"://|^-|file:|/(home|opt|root|tmp|usr)/", text, flags=re.MULTILINE)


def test_no_registry_is_named_anywhere() -> None:
    """Where packages come from is the machine's business, everywhere in the project."""
    registry = re.compile(
        r"python[h]osted\.org|\bpypi\.(org|io)|npm[j]s\.(org|com)|deb\.debian\.(org)", re.IGNORECASE
    )
    assert [place for place, text in texts() if registry.search(text)] == []


def test_files_of_the_build_know_nothing_of_this_machine() -> None:
    """Nothing that prepares the project names the folder it happens to stand in."""
    built = {place: text for place, text in texts() if place in {"Makefile", "pyproject.toml", ".ci/run"}}
    assert len(built) == 3
    assert [place for place, text in built.items() if str(ROOT) in text] == []


def test_every_rule_switched_off_has_its_reason_beside_it() -> None:
    """In pyproject.toml, each ignored rule is a line of its own that ends in words."""
    lint = PROJECT["tool"]["ruff"]["lint"]
    switched_off = [*lint["ignore"], *(rule for rules in lint["per-file-ignores"].values() for rule in rules)]
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    with_reason = [
        match["rule"]
        for line in lines
        if (match := re.fullmatch(r'    "(?P<rule>[A-Z]+\d*)", +# (?P<reason>.+)', line))
        and REASON.search(match["reason"])
    ]
    assert sorted(switched_off) == sorted(with_reason)


def test_every_exception_to_a_rule_has_its_reason_beside_it() -> None:
    """A noqa or a type: ignore names its rule and is followed by words, on the same line."""
    exception = re.compile(r"# (?:noqa|type: ignore)(?P<rules>[^ \n]*(?: [A-Z]+\d+,?)*)(?P<words>.*)")
    bare = [
        f"{place}: {match[0]}"
        for place, text in texts()
        if place.endswith(".py") and place != "tests/test_project.py"
        for match in exception.finditer(text)
        if not match["rules"] or not REASON.search(match["words"] + " ")
    ]
    assert bare == []

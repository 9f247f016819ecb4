"""The tests see what they are there to see: each planted fault makes the test that is named for it fail."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.mutants.copies import Outcome, run_tests
from tests.mutants.planted import MUTANTS, Mutant

AT_ONCE = 2
NAMES = [mutant.name for mutant in MUTANTS]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def outcomes(
    cluster: str, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Outcome | AssertionError]:
    """What came of each mutant's own test, by the mutant's name."""
    folder = tmp_path_factory.mktemp("mutants")

    def attempt(numbered: tuple[int, Mutant]) -> Outcome | AssertionError:
        number, mutant = numbered
        try:
            return run_tests(folder / str(number), cluster, mutant.edits, mutant.killer)
        except AssertionError as error:
            return error

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(NAMES, pool.map(attempt, enumerate(MUTANTS)), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_found(outcomes: Mapping[str, Outcome | AssertionError], name: str) -> None:
    """Its test ran, and failed."""
    outcome = outcomes[name]
    if isinstance(outcome, AssertionError):
        raise outcome
    assert outcome.failed, outcome.said[-3000:]


def test_the_same_tests_hold_where_no_fault_is_planted(cluster: str, tmp_path: Path) -> None:
    """In a copy just like those, so that nothing but the fault makes them fail."""
    outcome = run_tests(tmp_path / "whole", cluster, (), *sorted({mutant.killer for mutant in MUTANTS}))
    assert outcome.passed, outcome.said[-3000:]

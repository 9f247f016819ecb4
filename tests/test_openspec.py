"""The specification and the tests name each other, in both directions."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = frozenset(
    {
        f"{letter}{n}"
        for letter, last in zip("ABCDEFG", (4, 5, 2, 4, 2, 6, 2), strict=True)
        for n in range(1, last + 1)
    }
    | {f"B-{n}" for n in range(1, 9)}
)
FROM_THE_DOCUMENTS = frozenset(
    f"S-{letter}{n}"
    for letter, last in zip("ABCDEF", (2, 4, 3, 4, 2, 4), strict=True)
    for n in range(1, last + 1)
)
OWN_LETTER = {
    "pipeline": "P",
    "storage": "S",
    "intake": "I",
    "recognition": "R",
    "operation": "O",
    "panel": "W",
}

SCENARIO = re.compile(r"^#### Scenario: (?P<id>S-[A-Z][1-9]\d*) (?P<title>\S.*)$", re.MULTILINE)
CITATION = re.compile(r"\(rules? (?P<rules>[^()]+)\)")
TEST_ID = re.compile(r"^test_s_(?P<letter>[a-z])(?P<number>\d+)(?:_|$)")


def specs() -> dict[str, str]:
    """The text of every specification, by capability, without what stands in code fences."""
    return {
        path.parent.name: re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for path in sorted((ROOT / "openspec/specs").glob("*/spec.md"))
    }


def scenario_ids() -> list[str]:
    """Every scenario's id, as often as it is written."""
    return [match["id"] for text in specs().values() for match in SCENARIO.finditer(text)]


def ids_carried_by(source: str) -> Iterator[str]:
    """The scenario ids carried by the tests of one module: its functions and the methods of its classes."""
    module = ast.parse(source)
    bodies = [module.body, *(node.body for node in module.body if isinstance(node, ast.ClassDef))]
    for node in (node for body in bodies for node in body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (match := TEST_ID.match(node.name)):
            yield f"S-{match['letter'].upper()}{match['number']}"


def all_ids_carried() -> dict[str, list[str]]:
    """Every id that a test carries, with the files it is carried in."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for scenario in ids_carried_by(path.read_text()):
            found.setdefault(scenario, []).append(str(path.relative_to(ROOT)))
    return found


def in_order(ids: Collection[str]) -> str:
    """The ids by letter and then by number, for a person to read."""
    return ", ".join(sorted(ids, key=lambda name: (name.rstrip("0123456789"), len(name), name)))


def test_every_capability_is_specified() -> None:
    """The six capabilities are there, so an emptied folder cannot pass for a valid one."""
    assert set(specs()) == set(OWN_LETTER)


def test_every_scenario_carries_an_id_of_its_own() -> None:
    """No scenario goes without an id, and none shares one."""
    headings = sum(len(re.findall(r"^####\s", text, re.MULTILINE)) for text in specs().values())
    ids = scenario_ids()
    assert headings == len(ids), "a `####` heading is not of the form `#### Scenario: S-X1 Title`"
    twice = {name for name, count in Counter(ids).items() if count > 1}
    assert not twice, f"scenario ids used more than once: {in_order(twice)}"


def test_every_scenario_says_when_and_then() -> None:
    """A scenario without a given, a cause and an effect cannot be tested."""
    for text in specs().values():
        for part in re.split(r"^#### ", text, flags=re.MULTILINE)[1:]:
            body = re.split(r"^##+ ", part, flags=re.MULTILINE)[0]
            for word in ("GIVEN", "WHEN", "THEN"):
                assert f"- **{word}** " in body, f"no {word} in {part.splitlines()[0]!r}"


def test_own_scenarios_stand_in_the_capability_of_their_letter() -> None:
    """An id of our own tells where its scenario is found."""
    for capability, text in specs().items():
        own = {match["id"] for match in SCENARIO.finditer(text)} - FROM_THE_DOCUMENTS
        strays = {name for name in own if name[2] != OWN_LETTER[capability]}
        assert not strays, f"scenarios with another capability's letter in {capability}: {in_order(strays)}"


def test_the_documents_are_covered() -> None:
    """Every scenario the customer wrote down is in the specification."""
    missing = FROM_THE_DOCUMENTS - set(scenario_ids())
    assert not missing, f"scenarios of the documents that no spec holds: {in_order(missing)}"


def test_every_rule_is_cited_by_a_requirement() -> None:
    """Every rule is named in some requirement's text, and no requirement cites a rule that is none."""
    cited = {
        rule
        for text in specs().values()
        for citation in CITATION.finditer(text)
        for rule in re.split(r",\s+", citation["rules"])
    }
    assert not RULES - cited, f"rules no requirement cites: {in_order(RULES - cited)}"
    assert not cited - RULES, f"cited, but no rules: {sorted(cited - RULES)}"


def test_every_scenario_has_a_test() -> None:
    """A scenario nobody checks is a guess."""
    missing = set(scenario_ids()) - set(all_ids_carried())
    assert not missing, f"scenarios without a test (`test_s_b1_...` tests S-B1): {in_order(missing)}"


def test_every_tested_scenario_is_written_down() -> None:
    """A test that carries an id shows something the specification says."""
    written = set(scenario_ids())
    strays = [
        f"{name} in {', '.join(files)}" for name, files in all_ids_carried().items() if name not in written
    ]
    assert not strays, "tests name scenarios no spec holds: " + "; ".join(strays)


def test_ids_are_read_from_test_names_alone() -> None:
    """Only a test's own name counts: not a helper, a nested function, or a mention."""
    source = '''
"""S-A1"""
async def test_s_b1_three_claimers(): ...
class TestOutcome:
    def test_s_p11(self): ...
def check_s_a1_outcome():
    def test_s_c1_inner(): ...
def test_s_b1x(): ...
'''
    assert list(ids_carried_by(source)) == ["S-B1", "S-P11"]

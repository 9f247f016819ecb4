"""`rubezh explain` on a real database: a person's answer and a script's."""

from collections.abc import Callable

from .conftest import Ran

Rubezh = Callable[..., Ran]


def test_a_person_reads_it_in_80_columns(rubezh: Rubezh, record: str) -> None:
    """The verdict first, then the facts, then each condition of the claim."""
    told = rubezh("explain", record)
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(
        "It is ready and not claimed: no daemon is alive; start one with: rubezh serve."
    )
    assert "talk\\x1b[2J.wav" in told.out
    assert "  NO   a daemon claims" in told.out
    assert "  yes  due                    wake_at IS NULL OR wake_at <= now\n" in told.out
    assert "0 s of work of the " in told.out
    assert "number 1 in its lane" in told.out
    assert max(len(line) for line in told.out.splitlines()) <= 80


def test_a_script_reads_json(rubezh: Rubezh, record: str) -> None:
    """The same as the doors answer."""
    told = rubezh("explain", record, "--json").json
    assert told["id"] == record
    assert told["excluded_by"] == ["a daemon claims", "store mounted", "stage known", "lane free"]
    assert told["milestone_limit_seconds"] > 0


def test_a_stop_is_told_with_its_whole_reason(rubezh: Rubezh, record: str) -> None:
    """And with the way out."""
    rubezh("records", "stop", record)
    told = rubezh("explain", record)
    assert told.out.startswith("It is stopped until a person lifts it with: rubezh records lift\n" + record)
    assert "The reason of the stop:\n" in told.out
    assert "stopped_by_owner" in told.out


def test_an_unknown_record_is_bad_input(rubezh: Rubezh) -> None:
    """One sentence, exit code 2."""
    unknown = "01970000-0000-7000-8000-000000000000"
    assert rubezh("explain", unknown) == Ran(
        2, "", f"rubezh: there is no record {unknown}; see: rubezh records list\n"
    )

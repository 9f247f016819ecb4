"""Whatever a name or a text holds, a terminal shows it and obeys none of it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from daemon.cli.words import facts, file_name, json_document, length, printable, table, tell


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_what_is_printable_cannot_move_the_cursor(text: str) -> None:
    """Control characters, separators and lone surrogates are written out."""
    shown = printable(text)
    assert shown.isprintable()
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert printable(shown) == shown


def test_the_bytes_of_a_hostile_name_are_told() -> None:
    """One can find the file by what is shown of it."""
    assert file_name(Path("a\x1b[2J\n\udcff.wav")) == "a\\x1b[2J\\n\\xff.wav"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0:00"), (42.9, "0:42"), (725, "12:05"), (3723, "1:02:03"), (360000, "100:00:00")],
)
def test_lengths_read_like_a_clock(seconds: float, shown: str) -> None:
    """Hours only where there are some."""
    assert length(seconds) == shown


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=90)), max_size=5))
def test_a_table_stays_in_its_width(rows: list[tuple[str, str]]) -> None:
    """No line is wider than the terminal, however wide the letters; without one nothing is cut."""
    for line in table(("A", "B"), rows, width=80).splitlines():
        assert cell_len(line) <= 80
    whole = table(("A", "B"), rows, width=None)
    assert all(printable(cell).strip() in whole for row in rows for cell in row)
    assert len(whole.splitlines()) == len(rows) + 1


def test_columns_stand_below_their_heads() -> None:
    """Wide letters count for two."""
    assert table(("ID", "FILE"), [("1", "a"), ("漢字", "b")], width=80) == "ID    FILE\n1     a\n漢字  b\n"


def test_a_cut_cell_says_so() -> None:
    """An ellipsis ends what did not fit."""
    assert table(("A", "B"), [("x", "0123456789abcdef")], width=15) == "A  B\nx  0123456789a…\n"


def test_facts_without_a_value_are_left_out() -> None:
    """Names are aligned among those that have one."""
    assert facts([("id", "1"), ("stopped", ""), ("file", "b")]) == "id    1\nfile  b\n"


def test_json_is_for_scripts() -> None:
    """Ids are text and moments UTC."""
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    text = json_document({"id": UUID(int=5), "at": at, "sha": b"\x01", "name": "имя", "path": Path("/x")})
    assert "имя" in text
    assert json.loads(text) == {
        "id": "00000000-0000-0000-0000-000000000005",
        "at": "2026-01-02T03:04:05Z",
        "sha": "01",
        "name": "имя",
        "path": "/x",
    }


def test_each_sentence_begins_with_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    """Indented lines go on with the one before."""
    tell("one\n  more\ntwo")
    assert capsys.readouterr() == ("", "rubezh: one\n  more\nrubezh: two\n")

"""What is made from the code and the manuals is in step with them, and a reader gets all of it."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from daemon.settings import Settings, structure_settings
from daemon.structuring import dotted_names
from docs.pages import generated, program_page, settings_page
from docs.roff import roff

ROOT = Path(__file__).resolve().parent.parent
PAGES = [path for path in generated() if path.parent.name == "man"]


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_what_is_made_is_as_it_would_be_made_now(path: Path) -> None:
    """After a change of settings, commands, events or their manuals: make texts."""
    assert path.read_text("utf-8") == generated()[path]


def test_the_page_names_every_setting_with_its_default() -> None:
    """rubezh.toml(5) holds each setting that the code has, and no other."""
    told = re.findall(r"^\.TP 8\n\\fB([a-z_]+(?:\.[a-z_]+)?)\\fR \(default", settings_page(), re.MULTILINE)
    assert told == [name for name, _ in dotted_names(Settings)]


def test_the_page_has_every_command() -> None:
    """rubezh(1) has a section for each section of docs/command-line.md."""
    manual = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    named = re.findall(r"^#+ (rubezh .+)$", manual, re.MULTILINE)
    assert re.findall(r"^\.SS (rubezh .+)$", program_page(), re.MULTILINE) == named


def test_the_example_settings_are_the_defaults() -> None:
    """Freed of its comment signs the file is read, names every setting and changes none."""
    text = re.sub(
        r"^# (?=[a-z_]+ = )", "", (ROOT / "docs" / "rubezh.toml").read_text("utf-8"), flags=re.MULTILINE
    )
    raw = tomllib.loads(text)
    tables = {name: set(table) for name, table in raw.items() if isinstance(table, dict)}
    assert {f"{table}.{name}" for table, names in tables.items() for name in names} | {"state"} == {
        name for name, _ in dotted_names(Settings)
    }
    assert raw.pop("state") == "/var/lib/rubezh"
    assert structure_settings(raw, source="the example") == Settings()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_groff_sets_the_pages_without_a_word(page: Path) -> None:
    """No request it does not know, no line it cannot set, and nothing of our Markdown left over."""
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    command = ["groff", "-man", "-Tutf8", "-K", "utf8", "-ww", "-P-c", str(page)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert not re.search(r"\]\(|\*\*|``|^\|", done.stdout, re.MULTILINE)
    assert "rubezh" in done.stdout


@pytest.mark.parametrize(
    ("markdown", "page"),
    [
        ("## The doors", ".SH THE DOORS\n"),
        ("### rubezh records", ".SS rubezh records\n"),
        ("Two\nlines.", ".PP\nTwo lines.\n"),
        ("`--a`, **b** and *c*, [d](e.md).", ".PP\n\\fB\\-\\-a\\fR, \\fBb\\fR and \\fIc\\fR, d.\n"),
        ("- one\n  goes on\n- two", ".IP \\(bu 2\none goes on\n.IP \\(bu 2\ntwo\n"),
        ("```sh\n.hidden 'a\\b'\n```", ".PP\n.RS 4\n.EX\n\\&.hidden \\(aqa\\eb\\(aq\n.EE\n.RE\n"),
        ("| a | b |\n|---|---|\n| `x\\|y` | .z |", ".TP 8\n\\fBx|y\\fR\n\\&.z\n"),
        ("| a | is | b |\n|---|---|---|\n| `x` | 1 | y |", ".TP 8\n\\fBx\\fR (is 1)\ny\n"),
    ],
)  # fmt: skip
def test_each_form_of_markdown_has_its_form_in_the_page(markdown: str, page: str) -> None:
    """What roff would take for a request or an escape means itself."""
    assert roff(markdown) == page

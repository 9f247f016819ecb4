"""What is made from the code and from docs/: manual pages, example settings, the journal's catalog, tables.

`make texts` writes all of it; tests/test_pages.py holds it in step.
"""

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

from daemon.catalogue import catalogue
from daemon.happenings import EVENTS
from daemon.remedies import REMEDIES, STOP_REMEDIES
from docs.roff import inline, roff

ROOT: Final = Path(__file__).resolve().parent.parent
_EVENT_ROW: Final = re.compile(r"^\| `(?P<event>[a-z_]+\.[a-z_]+)` \| (?P<level>[a-z]+) \|.*$", re.MULTILINE)
_STOP_ROWS: Final = re.compile(r"(?<=\| code \| what to do \|\n\|---\|---\|\n)(\|.*\n)*")
_SETTING: Final = re.compile(
    r"^\| `(?P<name>[a-z_.]+)` \| (?P<default>.+?) \| (?P<allowed>.+?) \| (?P<meaning>.+) \|$", re.MULTILINE
)

_FILES: Final = """
## Files

| file | meaning |
|---|---|
| `/etc/rubezh/rubezh.toml` | The settings, of root and of the service; see `rubezh.toml(5)`. |
| `~/.config/rubezh/rubezh.toml` | The settings of everybody else. |
| `/var/lib/rubezh` | The state folder of root and of the service: database, recordings, models. |
| `~/.local/state/rubezh` | That of everybody else. |

## Environment

| variable | meaning |
|---|---|
| `RUBEZH_CONFIG` | The file of settings, unless `--config` names one. |
| `RUBEZH_STATE` | The state folder, unless `--state` names one. |
| `XDG_CONFIG_HOME` | Where the settings are, instead of `~/.config`. |
| `XDG_STATE_HOME` | Where the state is, instead of `~/.local/state`. |

## See also

`rubezh.toml(5)`, `journalctl(1)`, `systemctl(1)`; operators.md, protocol.md and vocabulary.md in this
program's documentation.
"""


def generated() -> dict[Path, str]:
    """Return the content of every file that is made."""
    return {
        ROOT / "docs/man/rubezh.1": program_page(),
        ROOT / "docs/man/rubezh.toml.5": settings_page(),
        ROOT / "docs/rubezh.toml": example(),
        ROOT / "docs/operators.md": operators(),
        ROOT / "systemd/rubezh.catalog": catalogue(),
    }


def program_page() -> str:
    """Return rubezh(1), from docs/command-line.md."""
    opening, commands = re.split(r"^(?=## rubezh )", _read("command-line.md"), maxsplit=1, flags=re.MULTILINE)
    exits, options = _table_of(opening, "exit code"), _table_of(opening, "option")
    rest = opening.partition("\n")[2].replace(exits, "").replace(options, "")
    rest = rest.replace("Every command but `version` takes\n", "")
    return (
        _head("RUBEZH", 1, "rubezh", "turns recordings into text, and never loses one that was accepted")
        + ".SH SYNOPSIS\n.B rubezh\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n"
        + ".SH DESCRIPTION\n"
        + roff(rest)
        + ".SH OPTIONS\nEvery command but \\fBversion\\fR takes\n"
        + roff(options)
        + ".SH COMMANDS\n"
        + roff(commands, section=".SS")
        + ".SH EXIT STATUS\n"
        + roff(exits)
        + roff(_FILES)
    )


def settings_page() -> str:
    """Return rubezh.toml(5), from docs/settings.md."""
    body = _read("settings.md").partition("\n")[2]
    return (
        _head("RUBEZH.TOML", 5, "rubezh.toml", "settings of Rubezh")
        + ".SH DESCRIPTION\n"
        + roff(body)
        + ".SH SEE ALSO\n\\fBrubezh(1)\\fR\n"
    )


def example() -> str:
    """Return a file of settings in which everything is a comment: each setting with its default."""
    return "".join(
        [
            "# Settings of Rubezh: each with its default. What is to be otherwise loses its #.\n",
            "# Copy this file to /etc/rubezh/rubezh.toml. What each one means: man rubezh.toml\n",
            *_example_lines(),
        ]
    )


def operators() -> str:
    """Return docs/operators.md with its tables of events and of stops as the code has them."""
    text = _EVENT_ROW.sub(lambda row: event_row(row["event"], row["level"]), _read("operators.md"))
    stops = "".join(f"| `{code}` | {remedy} |\n" for code, remedy in STOP_REMEDIES.items())
    return _STOP_ROWS.sub(lambda _: stops, text)


def event_row(event: str, level: str) -> str:
    """Return the line of the operators' table about an event."""
    meaning = EVENTS.get(event, "there is no such event")
    told = f"{meaning[0].upper()}{meaning[1:]}. {REMEDIES.get(event, '')}".rstrip()
    return f"| `{event}` | {level} | {told} |"


def _example_lines() -> Iterator[str]:
    table = ""
    for row in _SETTING.finditer(_read("settings.md")):
        above, _, name = row["name"].rpartition(".")
        if above != table:
            yield f"\n[{above}]\n"
            table = above
        elif not above:
            yield "\n"
        default = row["default"]
        value = default.strip("`") if default.startswith("`") else '"/var/lib/rubezh"'
        yield f"# {name} = {value}\n"


def _table_of(text: str, first: str) -> str:
    found = re.search(rf"^\| {first} \|(?:.*\n)(?:\|.*\n)+", text, re.MULTILINE)
    assert found is not None, first  # noqa: S101 - the page is ours, and has it
    return found[0]


def _head(title: str, section: int, name: str, what: str) -> str:
    return (
        f'.TH {title} {section} "" "Rubezh {version("rubezh")}" "Rubezh"\n'
        ".ad l\n.nr HY 0\n"  # a narrow terminal reads better ragged than stretched and hyphenated
        f".SH NAME\n{name} \\- {inline(what)}\n"
    )


def _read(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text, "utf-8")

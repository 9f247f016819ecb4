"""docs/command-line.md and the commands say the same."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from daemon.cli.program import program

MANUAL = Path(__file__).parents[3] / "docs" / "command-line.md"
EVERYWHERE = {"--config", "--state", "--verbose", "--help"}


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Return every command with the words it is called by, groups included."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, f"{path} {name}")


def sections() -> dict[str, str]:
    """Return the manual's sections by their headings."""
    parts = re.split(r"^#+ (rubezh .+)$", MANUAL.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_command_has_its_section_and_every_section_its_command() -> None:
    """None is missing and none is left over."""
    assert set(sections()) == {path for path, _ in commands(program, "rubezh")} - {"rubezh"}


def test_every_option_is_described_where_it_belongs() -> None:
    """The options of a command's table are the command's, by their long names."""
    for path, command in commands(program, "rubezh"):
        if path == "rubezh":
            continue
        described = set(re.findall(r"^\| (?:`-\w`, )?`(--[\w-]+)", sections()[path], re.MULTILINE))
        options = {
            option
            for parameter in command.params
            if isinstance(parameter, click.Option)
            for option in parameter.opts
            if option.startswith("--")
        }
        assert described == options - EVERYWHERE, path


def test_every_command_but_the_version_takes_the_common_options() -> None:
    """They mean the same everywhere."""
    for path, command in commands(program, "rubezh"):
        options = {option for parameter in command.params for option in parameter.opts}
        assert (
            isinstance(command, click.Group) or path == "rubezh version" or options >= EVERYWHERE - {"--help"}
        )

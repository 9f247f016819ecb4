"""`rubezh doctor`: what is wrong with this installation, and what to do about it."""

import sys

import attrs
import click
import trio

from daemon.cli.options import with_settings
from daemon.cli.words import json_document, printable, put
from daemon.doctor import Finding, State, examine
from daemon.settings import Settings

WELL, ILL = 0, 1

_COLOURS = {State.OK: "green", State.NOTE: "yellow", State.FAULT: "red"}


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
@with_settings
def command(settings: Settings, *, as_json: bool) -> int:
    """Tell what is wrong with this installation.

    Nothing is changed, and each finding has its remedy. The exit code is 1 when there is a fault, else 0.
    """
    findings = trio.run(examine, settings)
    well = all(found.state is not State.FAULT for found in findings)
    if as_json:
        put(json_document({"well": well, "findings": [attrs.asdict(found) for found in findings]}))
    else:
        put("".join(_shown(findings)))
    return WELL if well else ILL


def _shown(findings: tuple[Finding, ...]) -> list[str]:
    widest = max(len(found.check) for found in findings)
    return [_line(found, widest) for found in findings]


def _line(found: Finding, widest: int) -> str:
    mark = f"{found.state.upper() if found.state is State.FAULT else found.state:<5}"
    if sys.stdout.isatty():
        mark = click.style(mark, fg=_COLOURS[found.state])
    told = f"{mark}  {found.check:<{widest}}  {printable(found.told)}\n"
    indent = " " * (widest + 9)
    return told + (f"{indent}-> {printable(found.remedy)}\n" if found.remedy else "")

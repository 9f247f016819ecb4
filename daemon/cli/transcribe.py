"""`rubezh transcribe`: the whole service for a few recordings, until their texts are there."""

from pathlib import Path

import click
import trio

from daemon.cli.inputs import checked_inputs
from daemon.cli.job import Job
from daemon.cli.options import NamedPath, log_for_a_person, with_settings
from daemon.cli.outputs import planned_outputs
from daemon.cli.progress import display_for
from daemon.cli.words import tell
from daemon.cli.workplaces import run_somewhere
from daemon.intake.options import CHANNELS, LAST_TRACK, read_options
from daemon.settings import Settings
from daemon.transcript import EXPORTERS

DONE, FAILED, INTERRUPTED = 0, 1, 130


@click.command(name="transcribe")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=NamedPath())
@click.option(
    "--format",
    "form",
    type=click.Choice(list(EXPORTERS)),
    default="txt",
    show_default=True,
    help="What to write.",
)
@click.option("--language", default="auto", metavar="CODE", help="What is spoken; found out without this.")
@click.option(
    "--channels",
    type=click.Choice(CHANNELS),
    default="auto",
    show_default=True,
    help="What two channels are: one recording, or a side of a call each.",
)
@click.option(
    "--track",
    type=click.IntRange(0, LAST_TRACK),
    metavar="N",
    help="The audio track to take, from 0; without this the first that is heard.",
)
@click.option(
    "-o",
    "--output",
    type=NamedPath(),
    metavar="FILE|FOLDER",
    help="Write there; a folder gets a file for each recording.",
)
@with_settings
def command(
    settings: Settings,
    *,
    files: tuple[Path, ...],
    form: str,
    language: str,
    channels: str,
    track: int | None,
    output: Path | None,
) -> int:
    """Turn recordings into text, here and now.

    The text goes to stdout, the progress to stderr. A run that was interrupted goes on where it was when the
    same command is given again.
    """
    asked = {"language": language, "channels": channels, "track": "" if track is None else str(track)}
    options = read_options(asked.items())
    inputs = checked_inputs(files, largest_bytes=settings.intake.largest_bytes)
    outputs = planned_outputs(inputs, form, output)
    display = display_for(inputs)
    job = Job(inputs, outputs, form, options, display)
    log_for_a_person(verbose=click.get_current_context().params["verbose"], stream=display.log)
    with display:
        trio.run(run_somewhere, settings, job)
    if not job.is_done:
        tell("interrupted; the same command continues")
        return INTERRUPTED
    tell("\n".join((*job.cautions, *job.faults)))
    return FAILED if job.faults else DONE

"""`rubezh`: the commands by name, and how every way of ending is told."""

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import NoReturn

import click
from attrs import frozen

from daemon.cli.descriptors import complete_descriptors
from daemon.cli.words import tell
from storage.errors import Refused, RubezhError

DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130


@frozen
class _Where:
    """Where a command lives, and the line that `rubezh --help` has for it."""

    module: str
    help: str


_COMMANDS = {
    "transcribe": _Where("daemon.cli.transcribe", "Turn recordings into text, here and now."),
    "serve": _Where("daemon.cli.serve", "Run the service until it is told to stop."),
    "reload": _Where("daemon.cli.reload", "Have the running service read its settings again."),
    "records": _Where("daemon.cli.records", "See what became of records; stop, lift, delete them."),
    "explain": _Where("daemon.cli.explain", "Tell why a record does not move."),
    "doctor": _Where("daemon.cli.doctor", "Tell what is wrong with this installation."),
    "account": _Where("daemon.cli.accounts", "Add, list, disable and remove the accounts that own records."),
    "token": _Where("daemon.cli.tokens", "Issue, list and revoke the tokens that open the doors."),
    "version": _Where("daemon.cli.version", "Tell the version."),
}


class _Program(click.Group):
    """The commands, each imported only when it is called: the overview must come at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of their use."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(_COMMANDS[cmd_name].module).command
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview without importing anything."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, where.help) for name, where in _COMMANDS.items()])


@click.command(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
def program() -> None:
    """Turn recordings into text, and never lose one that was accepted."""


def main() -> NoReturn:
    """Run the command of this process's arguments and end the process with its exit code."""
    complete_descriptors()
    sys.exit(ended(sys.argv[1:]))


def ended(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code, whatever went wrong already told on stderr."""
    try:
        code = program.main(list(arguments), prog_name="rubezh", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return REFUSED
    except click.UsageError as error:
        tell(_usage(error))
        return REFUSED
    except click.Abort:
        return INTERRUPTED
    except SystemExit as error:  # click's own, when the reader of our output has left
        return error.code if isinstance(error.code, int) else FAILED
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:  # noqa: BLE001 - told here, at the end
        return _told(error)
    return code if isinstance(code, int) else DONE


def _usage(error: click.UsageError) -> str:
    where = error.ctx.command_path if error.ctx else "rubezh"
    message = error.format_message()
    return f"{message[:1].lower()}{message[1:].rstrip('.')}; see: {where} --help"


def _told(error: BaseException) -> int:
    """Tell how a command ended by an error: ours in its own sentence, all others with their traceback."""
    leaves = list(_leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        tell("interrupted")
        return INTERRUPTED
    if all(isinstance(leaf, BrokenPipeError) for leaf in leaves):
        # Whoever read our output wants no more of it; the interpreter must not complain at its end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if all(isinstance(leaf, RubezhError) for leaf in leaves):
        tell("\n".join(dict.fromkeys(str(leaf) for leaf in leaves)))
        return REFUSED if all(isinstance(leaf, Refused) for leaf in leaves) else FAILED
    traceback.print_exception(error)
    return FAILED


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Return the errors themselves: every nursery on the way wraps them in a group."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error

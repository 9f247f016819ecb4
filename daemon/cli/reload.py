"""`rubezh reload`: have the running service read its settings again, and tell what came of it."""

import os
import signal
import time

import click

from daemon.cli.options import with_settings
from daemon.reloading import Answer, read_answer
from daemon.settings import Settings
from storage.errors import Refused, Unavailable
from storage.folder import StateFolder

_PATIENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.05


@click.command(name="reload")
@with_settings
def command(settings: Settings) -> None:
    """Have the running service read its settings again.

    Nothing changes unless every changed setting may change while it runs.
    """
    answer = _ask(StateFolder(settings.state))
    if answer.refusal:
        raise Refused(answer.refusal)
    click.echo(f"changed: {', '.join(answer.changed)}" if answer.changed else "nothing was changed", err=True)


def _ask(folder: StateFolder) -> Answer:
    before = read_answer(folder.path).number
    holder = folder.holder()
    if holder is None:
        raise Refused(f"no service runs on {folder.path}; start it, and it reads its settings")
    try:
        os.kill(holder, signal.SIGHUP)
    except PermissionError as error:
        raise Refused(
            f"process {holder} runs the service as another user; ask as that user or as root"
        ) from error
    limit = time.monotonic() + _PATIENCE_SECONDS
    while (answer := read_answer(folder.path)).number == before:
        if time.monotonic() > limit or folder.holder() != holder:
            raise Unavailable(f"the service (process {holder}) gave no answer; its log may say why")
        time.sleep(_LOOK_SECONDS)
    return answer

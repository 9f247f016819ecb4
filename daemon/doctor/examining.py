"""The check-up: every check in order, each bounded; what one of them cannot look at is a finding too."""

from collections.abc import Callable, Iterable
from functools import partial

import trio

from daemon.doctor.database import check_data, reached
from daemon.doctor.doors import check_doors
from daemon.doctor.finding import Finding, fault
from daemon.doctor.places import check_folders, check_space, holder_of
from daemon.doctor.recogniser import check_memory, check_model
from daemon.doctor.units import check_units
from daemon.settings import Settings
from storage.folder import StateFolder

SECONDS = 30.0  # for all that is asked of the database

Check = Callable[[], Finding | Iterable[Finding]]


async def examine(settings: Settings) -> tuple[Finding, ...]:
    """Look at everything that the service stands on, and change nothing."""
    folder = StateFolder(settings.state)
    first = (partial(check_folders, folder), partial(check_space, folder))
    last = (
        partial(check_model, settings, folder.models),
        partial(check_memory, settings),
        lambda: check_doors(settings, folder, holder_of(folder)),
        partial(check_units, settings),
    )
    return (
        *[found for check in first for found in await _looked(check)],
        *await _examine_database(settings, folder),
        *[found for check in last for found in await _looked(check)],
    )


async def _looked(check: Check) -> list[Finding]:
    """Run a check that may wait for a disk or a process, in a thread; each bounds itself."""

    def look() -> list[Finding]:
        found = check()
        return [found] if isinstance(found, Finding) else list(found)

    try:
        return await trio.to_thread.run_sync(look)
    except OSError as error:
        where = error.filename or "something"
        return [
            fault(
                "files", f"{where} cannot be looked at ({error.strerror})", "run this as the service's user"
            )
        ]


async def _examine_database(settings: Settings, folder: StateFolder) -> tuple[Finding, ...]:
    findings: tuple[Finding, ...] = ()
    try:
        with trio.fail_after(SECONDS):
            async with reached(settings, folder) as found:
                findings = found.findings
                if found.database is not None:
                    findings += await check_data(found.database, folder)
    except trio.TooSlowError:
        told = f"the database did not tell how it is within {SECONDS:g} s"
        findings += (fault("database", told, "see what keeps it: its log, the machine's load"),)
    return findings

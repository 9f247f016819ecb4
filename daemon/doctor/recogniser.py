"""The recogniser: its model, and whether this machine has the memory it may take."""

import os
from pathlib import Path

from daemon.doctor.finding import Finding, fault, fault_of, note, ok
from daemon.settings import Settings
from stages.recognisers.models import look_for_model
from storage.errors import MeansAway

_MIB = 2**20


def check_model(settings: Settings, models: Path) -> Finding:
    """Look for the model; a known one that is yet to be made is not made for that."""
    setting = settings.whisper.model
    try:
        found = look_for_model(setting, models)
    except MeansAway as error:
        return fault_of("model", error, "name another in whisper.model")
    except OSError as error:
        return fault("model", f"{error.filename} cannot be read ({error.strerror})", "allow it to this user")
    if found is None:
        return note(
            "model", f"{setting!r} is installed, and not made yet", "nothing to do: the first start makes it"
        )
    return ok("model", f"{setting!r} in {found}")


def check_memory(settings: Settings) -> Finding:
    """Compare what the children may take with what the machine has."""
    return judge_memory(settings, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def judge_memory(settings: Settings, machine_bytes: int) -> Finding:
    """Say whether every child may take its limit at once."""
    whisper, convert = settings.whisper, settings.convert
    allowed = whisper.slots * whisper.memory_mb + convert.slots * convert.memory_mb
    has = machine_bytes // _MIB
    told = f"{has} MiB; recognition and conversion may take {allowed} MiB together"
    if allowed > has:
        return note(
            "memory",
            told,
            "if the machine swaps: fewer whisper.slots, or a smaller model and whisper.memory_mb",
        )
    return ok("memory", told)

"""What a person does with the service's records belongs into its log, beside what the service does."""

import os
from pathlib import Path
from typing import Final

from daemon.journal import as_journal_entry
from daemon.journald import JOURNAL, JournalSocket
from daemon.wording import hide_secrets

# systemd keeps this name for as long as the unit is active.
_ACTIVE: Final = Path("/run/systemd/units/invocation:rubezh.service")


def tell_service_log(event: str, **facts: object) -> None:
    """Say an event in the journal where the service under systemd has its log, and nowhere else."""
    if not os.path.lexists(_ACTIVE) or not JOURNAL.exists():
        return
    entry = hide_secrets(None, "info", {"event": event, "level": "info", **facts})
    sink = JournalSocket()
    # One that journald does not take now is lost; the record's own history has it all the same.
    sink.send(as_journal_entry(entry))
    sink.close()

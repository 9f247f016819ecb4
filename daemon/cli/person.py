"""Who uses the command line."""

import os
import pwd


def person() -> str:
    """Return the name of the system's user: who did it, and whose the recordings of this machine are."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"

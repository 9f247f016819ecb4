"""The file of settings as it is read: a file, or what a shell's `<(...)` writes; never waited for long."""

import os
import select
import time
import tomllib
from pathlib import Path
from typing import Any, Final

from storage.errors import SettingsRefused

MOST_BYTES: Final = 2**20
PATIENCE_SECONDS: Final = 5.0


def read_file(file: Path) -> dict[str, Any]:
    """Return what the TOML says; raises SettingsRefused for what cannot be read, soon, or is no TOML."""
    try:
        return tomllib.loads(_read(file).decode("utf-8-sig"))
    except OSError as error:
        message = f"{file}: cannot be read ({error.strerror}); name a readable file with --config"
        raise SettingsRefused(message) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsRefused(f"{file}: is not TOML ({error})") from error


def _read(file: Path) -> bytes:
    # A pipe without a writer would hold up a plain open, and one whose writer says nothing a plain read.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        until, content = time.monotonic() + PATIENCE_SECONDS, b""
        while waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            part = os.read(descriptor, MOST_BYTES)
            if not part:
                return content
            content += part
            if len(content) > MOST_BYTES:
                message = f"{file}: is larger than {MOST_BYTES} bytes, so it is no file of settings"
                raise SettingsRefused(message)
    finally:
        os.close(descriptor)
    raise SettingsRefused(
        f"{file}: nobody wrote it to its end within {PATIENCE_SECONDS:g} s; name a file with --config"
    )

"""One machine with Rubezh installed for all the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.systemd.installed import installed
from tests.systemd.private import PrivateSystemd, need_systemd


@pytest.fixture(scope="session")
def machine() -> Iterator[PrivateSystemd]:
    """A booted machine with Rubezh installed, its service not running."""
    need_systemd()
    with installed() as booted:
        yield booted

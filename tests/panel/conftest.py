"""One service and one browser for all the tests of this folder; people of their own for each of them.

Both end with the folder's last test: while Playwright runs, no test on Trio can run in the same thread.
"""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.acceptance.conftest import FAST
from tests.acceptance.rig import Rig
from tests.conftest import TEMPLATE, own_database
from tests.panel.browser import chromium, chromium_path
from tests.panel.house import House, Person
from tests.processes import CHECKOUT

SCREENSHOTS = CHECKOUT / "build" / "screenshots"
_numbers = count(1)


@pytest.fixture(scope="package")
def whole_house(cluster: str) -> Iterator[House]:
    """The running service with its browser."""
    chromium_path()
    folder = Path(tempfile.mkdtemp(prefix="rz-"))
    folder.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    with own_database(cluster, TEMPLATE) as dsn:
        rig = Rig(folder, dsn, intake={"listen": listen}, **FAST)
        rig.start("tests.panel.reading_service", str(rig.file))
        try:
            with chromium() as browser:
                yield House(rig, f"http://{listen}", browser)
            rig.daemons[0].stop()
        finally:
            rig.end()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def house(whole_house: House) -> Iterator[House]:
    """The house, which a test leaves with every window closed; no page may have complained meanwhile."""
    yield whole_house
    whole_house.leave()


@pytest.fixture
def anna(house: House) -> Person:
    """Somebody with no records yet, in no other test."""
    return house.person(f"anna {next(_numbers)}")


@pytest.fixture
def boris(house: House) -> Person:
    """Somebody else."""
    return house.person(f"boris {next(_numbers)}")

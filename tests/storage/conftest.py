"""What the tests of the storage share beside the database."""

import pytest

from storage.database import Database
from tests.builders import Queue, a_queue


@pytest.fixture
async def queue(database: Database) -> Queue:
    """An empty queue in a database of this test's own."""
    return await a_queue(database)

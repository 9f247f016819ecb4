"""The protocol on a real PostgreSQL, and the fake store, do what the reference model says, step by step.

A failure prints the steps that lead to it, shrunk to the fewest.
"""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
import trio
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from storage.database import Database
from tests.model.fake_subject import FakeSubject
from tests.model.machine import ProtocolMachine
from tests.model.real_subject import real_subject
from tests.model.subjects import Subject, World

STEPS = 50
USUAL = settings(
    max_examples=200,
    stateful_step_count=STEPS,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
DEEP = settings(USUAL, max_examples=2000, derandomize=False)


async def walk(subject: Subject, world: World, how: settings) -> None:
    """Let the machine run in a thread, and the subject here."""

    def portal(step: Callable[[], Awaitable[object]]) -> object:
        return trio.from_thread.run(step)

    class Machine(ProtocolMachine):
        def __init__(self) -> None:
            super().__init__(portal, subject, world)

    await trio.to_thread.run_sync(lambda: run_state_machine_as_test(Machine, settings=how))


def a_world() -> World:
    """Return a world of which no database knows."""
    return World(owners=(UUID(int=1), UUID(int=2)), stores=(UUID(int=3), UUID(int=4)))


@pytest.mark.timeout(600)
async def test_postgresql_does_what_the_model_says(database: Database) -> None:
    """Answers, columns and events of the real protocol are the model's after each of 10,000 steps."""
    subject, world = await real_subject(database)
    await walk(subject, world, USUAL)


@pytest.mark.deep
async def test_postgresql_does_what_the_model_says_for_long(database: Database) -> None:
    """The same for 100,000 steps, by another chance each time."""
    subject, world = await real_subject(database)
    await walk(subject, world, DEEP)


@pytest.mark.timeout(600)
async def test_the_fake_store_does_what_the_model_says() -> None:
    """What stands between a caller and the fake store's own model changes nothing, so tests may trust it."""
    world = a_world()
    await walk(FakeSubject(world), world, USUAL)

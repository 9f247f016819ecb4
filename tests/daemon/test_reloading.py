"""Reading the settings again while the service runs."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import trio
from attrs import evolve
from structlog.testing import capture_logs

from daemon.reloading import CHANGEABLE, Answer, Reloading, changes, read_answer, refusal_of
from daemon.settings import DatabaseSettings, Settings, WorkSettings
from daemon.structuring import dotted_names
from storage.errors import SettingsRefused
from tests.processes import CHECKOUT
from tests.waiting import until

BEFORE = Settings(state=Path("/state"))
QUICKER = evolve(BEFORE, work=WorkSettings(poll_seconds=0.5, failures_limit=9))
BIGGER = evolve(
    QUICKER, work=WorkSettings(poll_seconds=0.5, workers=9), database=DatabaseSettings(pool_size=9)
)


def reloading(folder: Path, read: Callable[[], Settings], adopted: list[Settings]) -> Reloading:
    """Make one that writes down what is adopted."""
    return Reloading(folder=folder, running=BEFORE, read=read, adopt=adopted.append, status=lambda: "well")


def test_what_differs_is_named() -> None:
    """By the dotted names that the manual has."""
    assert list(changes(BEFORE, BEFORE)) == []
    assert set(changes(BEFORE, BIGGER)) == {"work.poll_seconds", "work.workers", "database.pool_size"}


def test_what_needs_a_restart_is_named_all_at_once() -> None:
    """In one sentence with its remedy."""
    assert refusal_of(list(changes(BEFORE, QUICKER))) == ""
    refusal = refusal_of(["work.poll_seconds", "work.workers", "database.pool_size"])
    assert refusal.startswith("work.workers, database.pool_size cannot change while the service runs")


def test_the_manual_names_what_may_change() -> None:
    """Exactly those, and each is a setting."""
    manual = (CHECKOUT / "docs" / "settings.md").read_text("utf-8")
    (section,) = re.findall(r"### Changing settings while the service runs\n(.*?)\n#", manual, re.DOTALL)
    assert set(re.findall(r"`(\w+\.\w+)`", section)) == CHANGEABLE
    assert {name for name, _ in dotted_names(Settings)} >= CHANGEABLE


async def test_all_is_adopted_or_nothing(tmp_path: Path) -> None:
    """A file with a fault, or with a change that needs a restart, leaves everything as it is."""
    adopted: list[Settings] = []
    found: list[Settings | Exception] = [SettingsRefused("x: 2 faults"), BIGGER, QUICKER, QUICKER]

    def read() -> Settings:
        one = found.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    again = reloading(tmp_path, read, adopted)
    with capture_logs() as entries:
        answers = [await again.again() for _ in range(4)]
    assert answers[0] == Answer(number=1, refusal="x: 2 faults")
    assert "work.workers" in answers[1].refusal
    assert answers[2] == Answer(number=3, changed=("work.poll_seconds", "work.failures_limit"))
    assert answers[3] == Answer(number=4), "they are what runs by now"
    assert adopted == [QUICKER, QUICKER]
    assert [entry["event"] for entry in entries] == ["settings.refused"] * 2 + ["settings.adopted"] * 2


async def test_a_hangup_reads_again_and_leaves_its_answer(tmp_path: Path) -> None:
    """Its number goes on from run to run, so that nobody takes an old answer for a new one."""
    adopted: list[Settings] = []
    for number in (1, 2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reloading(tmp_path, lambda: QUICKER, adopted).hear)
            await trio.testing.wait_all_tasks_blocked()
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda number=number: read_answer(tmp_path).number == number)  # type: ignore[misc]  # a lambda's default
            nursery.cancel_scope.cancel()
    assert adopted == [QUICKER, QUICKER]


async def test_an_answer_that_cannot_be_left_ends_nothing(tmp_path: Path) -> None:
    """The disk is full, perhaps; the settings hold all the same, and the next hangup is heard."""
    adopted: list[Settings] = []
    gone = tmp_path / "gone"
    with capture_logs() as entries:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reloading(gone, lambda: QUICKER, adopted).hear)
            await trio.testing.wait_all_tasks_blocked()
            for number in (1, 2):
                os.kill(os.getpid(), signal.SIGHUP)
                await until(lambda number=number: len(adopted) == number)  # type: ignore[misc]  # a lambda's default
            await until(lambda: len(entries) == 4)
            nursery.cancel_scope.cancel()
    assert [entry["event"] for entry in entries] == ["settings.adopted", "settings.unanswered"] * 2

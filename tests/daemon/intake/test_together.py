"""Questions that are asked together."""

from collections.abc import Collection

import pytest
import trio
import trio.testing

from daemon.intake.together import Together


class Reader:
    """Answers each key with its square; what it was asked is kept, and it waits to be let go."""

    def __init__(self) -> None:
        self.asked: list[set[int]] = []
        self.let_go = trio.Event()
        self.error: Exception | None = None

    async def read(self, keys: Collection[int]) -> dict[int, int]:
        """Answer when let go."""
        self.asked.append(set(keys))
        await self.let_go.wait()
        if self.error is not None:
            raise self.error
        return {key: key * key for key in keys if key}


async def test_who_asks_at_once_is_asked_for_at_once(nursery: trio.Nursery) -> None:
    """One question for all of them; who comes during it waits for the next, which is one as well."""
    reader, answers = Reader(), {}
    together = Together(reader.read)

    async def ask(key: int) -> None:
        answers[key] = await together.ask(key)

    for key in range(5):
        nursery.start_soon(ask, key)
    await trio.testing.wait_all_tasks_blocked()
    for key in range(5, 9):
        nursery.start_soon(ask, key)
    await trio.testing.wait_all_tasks_blocked()
    assert reader.asked == [set(range(5))]
    reader.let_go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert reader.asked == [set(range(5)), set(range(5, 9))]
    assert answers == {0: None, **{key: key * key for key in range(1, 9)}}


async def test_an_answer_is_never_older_than_its_question(nursery: trio.Nursery) -> None:
    """Who asks while the same is being read is not given what was read before."""
    reader = Reader()
    together = Together(reader.read)
    nursery.start_soon(together.ask, 3)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(together.ask, 3)
    await trio.testing.wait_all_tasks_blocked()
    reader.let_go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert reader.asked == [{3}, {3}]


async def test_a_failure_is_told_to_everybody_who_asked_and_to_nobody_after(nursery: trio.Nursery) -> None:
    """The next question is a new one."""
    reader, failures = Reader(), []
    together = Together(reader.read)

    async def ask(key: int) -> None:
        try:
            await together.ask(key)
        except ValueError as error:
            failures.append(str(error))

    reader.error = ValueError("away")
    for key in range(3):
        nursery.start_soon(ask, key)
    await trio.testing.wait_all_tasks_blocked()
    reader.let_go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert failures == ["away"] * 3
    reader.error = None
    assert await together.ask(4) == 16


async def test_whoever_goes_leaves_the_question_to_those_who_stay(nursery: trio.Nursery) -> None:
    """The one that is asking for all of them may be cancelled, and the others are answered."""
    reader, answers, scopes = Reader(), list[int | None](), {key: trio.CancelScope() for key in (1, 2, 3)}
    leaders: list[str] = []

    async def read(keys: Collection[int]) -> dict[int, int]:
        leaders.append(trio.lowlevel.current_task().name)
        return await reader.read(keys)

    together = Together(read)

    async def ask(key: int) -> None:
        with scopes[key]:
            answers.append(await together.ask(key))

    for key in scopes:
        nursery.start_soon(ask, key, name=str(key))
    await trio.testing.wait_all_tasks_blocked()
    first = int(leaders[0])
    scopes[first].cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert len(leaders) == 2
    reader.let_go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert {*answers} == {key * key for key in scopes if key != first}


async def test_a_single_question_waits_for_nobody() -> None:
    """It is asked at once, alone."""
    reader = Reader()
    reader.let_go.set()
    with pytest.raises(trio.TooSlowError), trio.fail_after(0):
        await Together(reader.read).ask(7)
    assert await Together(reader.read).ask(7) == 49

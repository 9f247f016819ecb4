"""A stage's child is bounded, its end is told, and none is ever left behind."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from daemon.child import LONGEST_LINE, told_death
from daemon.children import ChildPool, open_children
from stages.stage import Child, ChildDied, ChildLimits, ChildRecipe, Children
from tests.processes import eventually, is_alive


@pytest.fixture
async def pool() -> AsyncIterator[ChildPool]:
    """Children that are kept warm for long."""
    async with open_children(cpu_threads=2, idle_seconds=600) as pool:
        yield pool


@pytest.fixture
def recipe(tmp_path: Path) -> ChildRecipe:
    """How the parrot is started."""
    return ChildRecipe(module="tests.daemon.parrot", arguments=("one", "--two"), folder=tmp_path)


async def pid_of(child: Child) -> int:
    """Ask a child who it is."""
    await child.send({"do": "tell"})
    return int((await child.receive())["pid"])


async def death_of(pool: ChildPool, recipe: ChildRecipe, **message: object) -> str:
    """Tell a child to do something it dies of, and return how that was told."""
    with pytest.raises(ChildDied) as died, trio.fail_after(30):  # noqa: PT012 - either call may notice
        async with pool.started(recipe) as child:
            await child.send(message)
            await child.receive()
    return str(died.value)


async def test_it_is_the_children_that_stages_know(pool: ChildPool) -> None:
    """The pool has the shape that stages ask for."""
    known: Children = pool
    assert known is pool


async def test_messages_go_both_ways_whole(pool: ChildPool, recipe: ChildRecipe) -> None:
    """Any text survives the way there and back, up to the longest line."""
    async with pool.started(recipe) as child:
        for text in ("", "да\n\"'\\ \u2028 \U0001f600", "x" * (LONGEST_LINE - 100)):
            await child.send({"do": "echo", "text": text})
            assert await child.receive() == {"do": "echo", "text": text}


async def test_a_message_too_long_is_never_sent(pool: ChildPool, recipe: ChildRecipe) -> None:
    """A message over the bound is a fault of ours, told before anything is written."""
    async with pool.started(recipe) as child:
        with pytest.raises(ValueError, match="over 1048576"):
            await child.send({"do": "echo", "text": "x" * LONGEST_LINE})
        await child.send({"do": "echo"})
        assert await child.receive() == {"do": "echo"}


async def test_a_child_knows_nothing_of_ours(
    pool: ChildPool, recipe: ChildRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No variable of ours reaches it; it is told to stay off line and how many threads it may use."""
    monkeypatch.setenv("RUBEZH_SECRET", "hush")
    monkeypatch.setenv("LD_PRELOAD_NOT", "hush")
    async with pool.started(recipe) as child:
        await child.send({"do": "tell"})
        told = await child.receive()
    assert "hush" not in told["environ"].values()
    expected = {"HF_HUB_OFFLINE": "1", "ORT_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "2"}
    assert expected.items() <= told["environ"].items()
    assert told["folder"] == str(recipe.folder)
    assert told["argv"] == ["one", "--two"]


async def test_it_is_dead_when_the_block_is_left(pool: ChildPool, recipe: ChildRecipe) -> None:
    """Left well, by an error, or by a cancel: the process and its helpers are gone."""
    async with pool.started(recipe) as child:
        well = await pid_of(child)
    assert not is_alive(well)

    by_error = 0
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - what happens inside is the point
        async with pool.started(recipe) as child:
            by_error = await pid_of(child)
            raise ZeroDivisionError
    assert not is_alive(by_error)

    by_cancel = helper = 0
    with trio.move_on_after(20) as scope:
        async with pool.started(recipe) as child:
            by_cancel = await pid_of(child)
            await child.send({"do": "hang"})
            helper = (await child.receive())["helper"]
            assert is_alive(helper)
            scope.cancel()
            await child.receive()
    assert scope.cancelled_caught
    assert not is_alive(by_cancel)
    eventually(lambda: not is_alive(helper), "the helper died with the child")


async def test_how_it_ended_is_told(pool: ChildPool, recipe: ChildRecipe) -> None:
    """A crash, a kill, an exit and the last words are told apart."""
    module = "tests.daemon.parrot"
    assert (await death_of(pool, recipe, do="crash")).startswith(
        f"{module} crashed by signal SIGSEGV; its last"
    )
    killed = await death_of(pool, recipe, do="killed")
    assert killed == (
        f"{module} was killed from outside (SIGKILL), most likely because the machine ran out of memory"
    )
    left = await death_of(pool, recipe, do="leave", code=3, words=["first", "  the second "])
    assert left == f"{module} ended with exit code 3; its last words: first | the second"
    missing = ChildRecipe(module="tests.daemon.no_such", folder=recipe.folder)
    assert "No module named" in await death_of(pool, missing, do="echo")


async def test_limits_end_a_greedy_child_and_are_named(pool: ChildPool, recipe: ChildRecipe) -> None:
    """Memory and processor time over the limit are told as such."""
    memory = ChildRecipe(
        module=recipe.module, folder=recipe.folder, limits=ChildLimits(memory_bytes=512 << 20)
    )
    assert "ran out of the memory it may use (exit code 1)" in await death_of(pool, memory, do="devour")
    time = ChildRecipe(module=recipe.module, folder=recipe.folder, limits=ChildLimits(cpu_seconds=1))
    assert "used up the processor time it may use" in await death_of(pool, time, do="spin")


def test_every_kind_of_death_has_its_words() -> None:
    """What cannot be staged cheaply is told from its code and words alone."""
    assert "wrote a file larger than it may" in told_death("m", -signal.SIGXFSZ, "")
    aborted = told_death(
        "m", -signal.SIGABRT, "terminate called after throwing an instance of 'std::bad_alloc'"
    )
    assert aborted.startswith("m ran out of the memory it may use (signal SIGABRT)")
    assert told_death("m", 0, "out of memory, and well again").startswith("m ended with exit code 0")


async def test_a_child_that_breaks_the_protocol_is_ended(pool: ChildPool, recipe: ChildRecipe) -> None:
    """A line without end, a line that is no message, a closed side: told, and the child is dead."""
    assert "spoke a line of over 1048576 bytes and was ended" in await death_of(
        pool, recipe, do="long", length=2 * LONGEST_LINE
    )
    for line in ("not json", "[1]", "{} {}"):
        assert "spoke a line that is no message" in await death_of(pool, recipe, do="garble", line=line)
    assert "closed its output and lived on and was ended" in await death_of(pool, recipe, do="close")


async def test_chatter_on_stderr_blocks_nobody_and_only_the_last_is_kept(
    pool: ChildPool, recipe: ChildRecipe
) -> None:
    """Megabytes of it neither stop the child nor stay in memory."""
    async with pool.started(recipe) as child:
        await child.send({"do": "chatter", "lines": 300_000})
        with trio.fail_after(30):
            assert await child.receive() == {}
        await child.send({"do": "leave", "code": 1, "words": ["the very last"]})
        with pytest.raises(ChildDied) as died:
            await child.receive()
    assert str(died.value).endswith("line 299999 | the very last")
    assert len(str(died.value)) < 8192


async def test_sending_to_the_dead_is_told_too(pool: ChildPool, recipe: ChildRecipe) -> None:
    """Whoever notices first, the end is told."""
    async with pool.started(recipe) as child:
        pid = await pid_of(child)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_alive(pid), "the child is dead")
        with pytest.raises(ChildDied, match="was killed from outside"):
            await child.send({"do": "echo"})


async def test_a_healthy_child_is_kept_warm(pool: ChildPool, recipe: ChildRecipe) -> None:
    """The next use of the name gets the same process; another name does not."""
    pids = []
    for name in ("whisper", "whisper", "other"):
        async with pool.borrowed(name, recipe) as child:
            pids.append(await pid_of(child))
    assert pids[0] == pids[1] != pids[2]


async def test_each_slot_has_a_child_of_its_own(pool: ChildPool, recipe: ChildRecipe) -> None:
    """Two uses at once never share a process, and both are kept."""
    async with pool.borrowed("whisper", recipe) as first, pool.borrowed("whisper", recipe) as second:
        at_once = {await pid_of(first), await pid_of(second)}
    assert len(at_once) == 2
    async with pool.borrowed("whisper", recipe) as first, pool.borrowed("whisper", recipe) as second:
        assert {await pid_of(first), await pid_of(second)} == at_once


async def test_a_child_of_another_recipe_makes_way(
    pool: ChildPool, recipe: ChildRecipe, tmp_path: Path
) -> None:
    """A change of model or limits is never served by the old process."""
    async with pool.borrowed("whisper", recipe) as child:
        old = await pid_of(child)
    other = ChildRecipe(module=recipe.module, arguments=("another model",), folder=tmp_path)
    async with pool.borrowed("whisper", other) as child:
        assert await pid_of(child) != old
        assert not is_alive(old)


@pytest.mark.parametrize("how", ["error", "cancel", "unanswered", "half heard", "said more", "dead"])
async def test_a_child_that_was_not_left_well_is_not_used_again(
    pool: ChildPool, recipe: ChildRecipe, how: str
) -> None:
    """Nobody inherits another's answers: it is dead before the next use begins."""
    pid = 0
    with trio.move_on_after(20) as scope:
        try:
            async with pool.borrowed("whisper", recipe) as child:
                pid = await pid_of(child)
                match how:
                    case "error":
                        raise ZeroDivisionError  # noqa: TRY301 - as a stage would
                    case "cancel":
                        scope.cancel()
                        await child.receive()
                    case "unanswered":
                        await child.send({"do": "echo"})
                    case "half heard":
                        await child.send({"do": "hang"})
                        await child.receive()
                        with trio.move_on_after(0.01):
                            await child.receive()
                    case "said more":
                        await child.send({"do": "late"})
                        await child.receive()
                        while child.is_idle():  # noqa: ASYNC110 - it happens in another process
                            await trio.sleep(0.01)
                    case _:
                        os.kill(pid, signal.SIGKILL)
                        eventually(lambda: not is_alive(pid), "the child is dead")
        except ZeroDivisionError:
            assert how == "error"
    assert scope.cancelled_caught == (how == "cancel")
    assert not is_alive(pid)
    async with pool.borrowed("whisper", recipe) as child:
        assert await pid_of(child) != pid


async def test_one_that_died_while_it_was_warm_is_replaced(pool: ChildPool, recipe: ChildRecipe) -> None:
    """A death between two uses costs nobody an attempt."""
    async with pool.borrowed("whisper", recipe) as child:
        pid = await pid_of(child)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid), "the child is dead")
    async with pool.borrowed("whisper", recipe) as child:
        assert await pid_of(child) != pid


async def test_an_unused_child_is_ended_and_a_used_one_is_not(recipe: ChildRecipe) -> None:
    """After the idle seconds without a use its memory is given back."""
    async with open_children(cpu_threads=1, idle_seconds=0.2) as pool:
        async with pool.borrowed("whisper", recipe) as child:
            pid = await pid_of(child)
            await trio.sleep(0.4)
            assert is_alive(pid)
        with trio.fail_after(20):
            while is_alive(pid):  # noqa: ASYNC110 - it happens in another process
                await trio.sleep(0.01)


async def test_no_child_outlives_its_pool(recipe: ChildRecipe) -> None:
    """Warm ones and those in use are dead when the pool is left, also by a cancel."""
    warm = used = 0
    with trio.move_on_after(20) as scope:
        async with open_children(cpu_threads=1, idle_seconds=600) as pool:
            async with pool.borrowed("whisper", recipe) as child:
                warm = await pid_of(child)
            async with pool.borrowed("other", recipe) as child:
                used = await pid_of(child)
                assert is_alive(warm)
                scope.cancel()
                await trio.sleep_forever()
    assert not is_alive(warm)
    assert not is_alive(used)


async def test_no_descriptor_is_lost(pool: ChildPool, recipe: ChildRecipe) -> None:
    """Starting and ending children leaves no open file behind, also when the start fails."""

    async def use() -> None:
        async with pool.started(recipe) as child:
            await pid_of(child)
        gone = ChildRecipe(module=recipe.module, folder=recipe.folder / "gone")
        with pytest.raises(FileNotFoundError):
            async with pool.started(gone):
                pass

    await use()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only their number matters
    for _ in range(5):
        await use()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - only their number matters

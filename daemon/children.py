"""The child processes of the stages: started for one use, or kept warm between uses; never left behind."""

import math
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from attrs import frozen

from daemon.child import JsonLinesChild
from stages.stage import ChildRecipe

IDLE_SECONDS = 300.0


@frozen
class _Warm:
    child: JsonLinesChild
    until: float  # on Trio's clock


class ChildPool:
    """Starts children, as `stages.stage.Children` says. `open_children` makes it."""

    def __init__(self, nursery: trio.Nursery, *, cpu_threads: int, idle_seconds: float) -> None:
        self._nursery = nursery  # of the tasks that hear what children say on stderr
        self._cpu_threads = cpu_threads
        self._idle_seconds = idle_seconds
        self._warm: defaultdict[str, list[_Warm]] = defaultdict(list)

    @asynccontextmanager
    async def started(self, recipe: ChildRecipe) -> AsyncIterator[JsonLinesChild]:
        """Start a child for one use; it is dead when the block is left, whichever way."""
        child = JsonLinesChild(recipe, self._cpu_threads)
        try:
            self._hear(child)
            yield child
        finally:
            await child.close()  # noqa: ASYNC102 - shields and bounds itself

    @asynccontextmanager
    async def borrowed(self, name: str, recipe: ChildRecipe) -> AsyncIterator[JsonLinesChild]:
        """Take the warm child of that name and recipe, or start one.

        It is kept for the next use when the block ends well after the child's last answer, else it is
        dead when the block is left. A warm child of another recipe makes way.
        """
        warm = await self._take_warm(name, recipe)
        child = warm or JsonLinesChild(recipe, self._cpu_threads)
        kept = False
        try:
            if warm is None:
                self._hear(child)
            yield child
            kept = child.is_idle()
            if kept:
                self._warm[name].append(_Warm(child, trio.current_time() + self._idle_seconds))
        finally:
            if not kept:
                await child.close()  # noqa: ASYNC102 - shields and bounds itself

    def _hear(self, child: JsonLinesChild) -> None:
        self._nursery.start_soon(child.listen, name=f"stderr of {child.recipe.module} {child.pid}")

    async def _take_warm(self, name: str, recipe: ChildRecipe) -> JsonLinesChild | None:
        while self._warm[name]:
            child = self._warm[name].pop().child
            if child.recipe == recipe and child.is_idle():
                return child
            await child.close()  # noqa: ASYNC102 - shields and bounds itself
        return None

    async def end_idle(self) -> None:
        """End those that nobody has used for the idle seconds; runs until it is cancelled."""
        while True:
            await trio.sleep(self._idle_seconds / 4)
            await self.end_warm(trio.current_time())

    async def end_warm(self, now: float = math.inf) -> None:
        """End the warm children whose time is over by `now`. Shielded and bounded."""
        over = [(kept, warm) for kept in self._warm.values() for warm in kept if warm.until <= now]
        for kept, warm in over:
            kept.remove(warm)  # nobody may borrow one that is ending
        for _, warm in over:
            await warm.child.close()


@asynccontextmanager
async def open_children(*, cpu_threads: int, idle_seconds: float = IDLE_SECONDS) -> AsyncIterator[ChildPool]:
    """Have children for as long as the block lasts; what it raises comes in a group, as from any nursery."""
    async with trio.open_nursery() as nursery:
        pool = ChildPool(nursery, cpu_threads=cpu_threads, idle_seconds=idle_seconds)
        nursery.start_soon(pool.end_idle)
        try:
            yield pool
        finally:
            nursery.cancel_scope.cancel()
            await pool.end_warm()  # noqa: ASYNC102 - shields and bounds itself

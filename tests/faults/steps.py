"""Cancels a piece of work as the k-th scheduling step of it begins, so that every await of it is hit."""

from collections.abc import Awaitable, Callable

import trio
from attrs import frozen


@frozen
class Run:
    """How a run went: whether the cancel came at all before its end, and what it raised or returned."""

    hit: bool
    cancelled: bool
    result: object


class _Steps(trio.abc.Instrument):
    """Calls `strike` as step `at` begins: of one task and those below it, or of every task there is."""

    def __init__(self, at: int, strike: Callable[[], object], *, everybody: bool) -> None:
        self.struck = False
        self._left = at
        self._strike = strike
        self._everybody = everybody
        self._family = {trio.lowlevel.current_task()}

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        nursery = task.parent_nursery
        if nursery is not None and nursery.parent_task in self._family:
            self._family.add(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._everybody or task in self._family:
            self.step()

    def step(self) -> None:
        """One step more begins."""
        if self._left == 0 and not self.struck:
            self.struck = True
            self._strike()
        self._left -= 1


async def cancelled_at(
    step: int,
    work: Callable[[], Awaitable[object]],
    *,
    before: Callable[[], object] = lambda: None,
    everybody: bool = False,
) -> Run:
    """Run `work` and cancel it as its step number `step` begins; `before` is called just ahead of the cancel.

    Step 0 is what runs up to its first await. With `everybody` the steps of other tasks are counted too:
    those of the asyncio loop, in which the driver's own awaits happen.
    """
    scope = trio.CancelScope()

    def strike() -> None:
        before()
        scope.cancel(reason=f"step {step}")

    steps = _Steps(step, strike, everybody=everybody)
    result: object = None
    trio.lowlevel.add_instrument(steps)
    try:
        steps.step()
        with scope:
            result = await work()
    finally:
        trio.lowlevel.remove_instrument(steps)
    return Run(hit=steps.struck, cancelled=scope.cancelled_caught, result=result)

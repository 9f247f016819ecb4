"""Work with a companion: a task that runs beside it for as long as it lasts."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


async def work_beside(companion: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[T]]) -> T:
    """Do `work` while `companion` runs; the companion ends with it.

    What the work raises is raised as it is and in no group, so that whoever tells errors knows it again.
    """
    failure: Exception | None = None
    result: list[T] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(companion)
        try:
            result.append(await work())
        except Exception as error:  # noqa: BLE001 - raised again below, outside the nursery
            failure = error
        nursery.cancel_scope.cancel(reason="what it accompanies is done")
    if failure is not None:
        raise failure
    return result[0]

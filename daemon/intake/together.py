"""Questions that are asked at the same time are put to the database together.

While one question is under way, those that come wait for it and are then asked as one. So a thousand who ask
at once cost a handful of statements, and one who asks alone waits for nobody.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Generic, TypeVar

import trio

K = TypeVar("K")
V = TypeVar("V")


class _Batch(Generic[K, V]):
    def __init__(self) -> None:
        self.keys: set[K] = set()
        self.answers: Mapping[K, V] | None = None
        self.error: Exception | None = None
        self.is_led = False
        self.stirred = trio.Event()


class Together(Generic[K, V]):
    """`read` is given the keys of everybody who waits, and returns what there is for them."""

    def __init__(self, read: Callable[[Collection[K]], Awaitable[Mapping[K, V]]]) -> None:
        self._read = read
        self._turn = trio.Lock()
        self._open: _Batch[K, V] = _Batch()

    async def ask(self, key: K) -> V | None:
        """Return what there is for `key`, read after this was called; raises what the reading raised."""
        batch = self._open
        batch.keys.add(key)
        while batch.answers is None:
            if batch.error is not None:
                raise batch.error
            if batch.is_led:
                await batch.stirred.wait()
            else:
                await self._lead(batch)
        return batch.answers.get(key)

    async def _lead(self, batch: _Batch[K, V]) -> None:
        """Ask for a whole batch; whoever is cancelled in this leaves it to the next of those who wait."""
        batch.is_led = True
        try:
            async with self._turn:
                await trio.lowlevel.checkpoint()  # whoever was woken with us has asked by now, too
                if self._open is batch:
                    self._open = (
                        _Batch()
                    )  # who comes from now on must not be answered with what was read before
                batch.answers = await self._read(tuple(batch.keys))
        except Exception as error:  # noqa: BLE001 - raised for each of those who asked
            batch.error = error
        finally:
            batch.is_led = False
            stirred, batch.stirred = batch.stirred, trio.Event()
            stirred.set()

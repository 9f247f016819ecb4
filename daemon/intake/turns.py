"""Whose turn it is at an upload: whoever comes last, as a sender comes again only when its line is lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from uuid import UUID

import trio
from attrs import define, field

from daemon.intake.problems import Problem, come_again

PATIENCE_SECONDS = 5.0  # until whoever had the turn has put down what it got
_RETRY_LOCKED = 5


@define(eq=False)
class Turn:
    """One request at one upload; it waits for its sender inside `receiving`, which the next one cancels."""

    receiving: trio.CancelScope = field(factory=trio.CancelScope)
    over: trio.Event = field(factory=trio.Event)


class Turns:
    """The turns of this process; between processes the lock of the file decides."""

    def __init__(self) -> None:
        """Begin with nobody at any upload."""
        self._now: dict[UUID, Turn] = {}

    @asynccontextmanager
    async def mine(self, upload_id: UUID) -> AsyncIterator[Turn]:
        """Have the turn for the block; raises Problem when whoever has it cannot let go of it just now."""
        await self.interrupt(upload_id)
        turn = self._now[upload_id] = Turn()
        try:
            yield turn
        finally:
            del self._now[upload_id]
            turn.over.set()

    async def interrupt(self, upload_id: UUID) -> bool:
        """Let whoever receives this upload put down what it got; False when nobody does.

        Raises Problem when that takes too long.
        """
        interrupted = False
        with trio.move_on_after(PATIENCE_SECONDS):
            while (turn := self._now.get(upload_id)) is not None:
                interrupted = True
                turn.receiving.cancel(reason="its sender has come again")
                await turn.over.wait()
            return interrupted
        raise locked()


def locked() -> Problem:
    """Say that another request is at this upload and cannot let go of it."""
    detail = "Another request is writing this upload; try again in a moment."
    return come_again(HTTPStatus.LOCKED, "locked", detail, _RETRY_LOCKED)


def taken_over() -> Problem:
    """Say that a later request goes on with this upload."""
    detail = "A later request goes on with this upload; ask how far it is."
    return Problem(HTTPStatus.CONFLICT, "taken_over", detail)

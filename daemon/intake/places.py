"""Places for what is received at once: so many in all, and no more of them for one account than its share."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from uuid import UUID

from daemon.intake.problems import Problem, come_again

_RETRY_BUSY = 5


class Places:
    """A place is taken at once or not at all: nobody waits here, holding a connection."""

    def __init__(self, most: int, most_of_one: int) -> None:
        """Begin with every place free."""
        self._most = most
        self._most_of_one = most_of_one
        self._taken: Counter[UUID] = Counter()

    @contextmanager
    def taken(self, account_id: UUID) -> Iterator[None]:
        """Have a place for the block; raises Problem when there is none."""
        if self._taken[account_id] >= self._most_of_one:
            detail = (
                f"This account is sending {self._most_of_one} recordings at once already; "
                "wait until one of them is through."
            )
            raise come_again(HTTPStatus.TOO_MANY_REQUESTS, "too_many_uploads", detail, _RETRY_BUSY)
        if self._taken.total() >= self._most:
            raise busy()
        self._taken[account_id] += 1
        try:
            yield
        finally:
            self._taken[account_id] -= 1
            if not self._taken[account_id]:
                del self._taken[account_id]


def busy() -> Problem:
    """Say that every place is taken."""
    detail = "The service is receiving as many recordings as it can; try again in a moment."
    return come_again(HTTPStatus.SERVICE_UNAVAILABLE, "busy", detail, _RETRY_BUSY)

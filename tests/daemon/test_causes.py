"""What is said of an error: one line, with every error that is part of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from daemon.verdict import LONGEST_CAUSE, Circumstances, cause_of, judge
from storage.ending import Failed

UNDISTURBED = Circumstances(
    lease_ended=False, limit_ended=False, limit_seconds=60.0, stop_asked=False, ring_cancelled=False
)


@asynccontextmanager
async def a_recogniser_that_fails_to_close() -> AsyncIterator[None]:
    """A connection whose end fails as well."""
    try:
        yield
    finally:
        raise OSError("the connection was not closed")


async def fails_twice() -> None:
    """Fail at the work, and again at the close."""
    async with a_recogniser_that_fails_to_close():
        await trio.lowlevel.checkpoint()
        raise ValueError("no answer of that kind")


async def is_cancelled_and_fails_to_close() -> None:
    """Be cancelled at the work, and fail at the close."""
    with trio.CancelScope() as scope:
        async with a_recogniser_that_fails_to_close():
            scope.cancel()
            await trio.lowlevel.checkpoint()


def tells_of_its_cause() -> None:
    """Say in one error what matters of another."""
    cause = KeyError("detail")
    raise OSError("told in full") from cause


async def test_s_p12_a_failed_close_is_told_beside_the_first_error() -> None:
    """Neither the failure of the work nor that of the close is swallowed: both are in the attempt's cause."""
    with pytest.raises(OSError, match="not closed") as caught:
        await fails_twice()
    assert judge(None, caught.value, UNDISTURBED) == Failed(
        "OSError: the connection was not closed (on the way from ValueError: no answer of that kind)"
    )


async def test_s_p12_a_cancel_on_the_way_is_no_error() -> None:
    """A close that fails after a cancel is told alone."""
    with pytest.raises(OSError, match="not closed") as caught:
        await is_cancelled_and_fails_to_close()
    assert cause_of(caught.value) == "OSError: the connection was not closed"


def test_a_cause_given_on_purpose_speaks_for_itself() -> None:
    """An error raised `from` another one has said what matters of it."""
    with pytest.raises(OSError, match="told") as caught:
        tells_of_its_cause()
    assert cause_of(caught.value) == "OSError: told in full"


def test_a_cause_fits_any_column() -> None:
    """One line, bounded, and nothing in it that PostgreSQL refuses."""
    told = cause_of(ValueError("a\0b\nc\ud800" + "x" * 9999))
    assert told.startswith("ValueError: a\N{REPLACEMENT CHARACTER}b c?x")
    assert len(told) == LONGEST_CAUSE

"""What an attempt came to, decided from what rose out of it and what was true around it."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from daemon.verdict import LONGEST_CAUSE, Circumstances, cause_of, cleanup_errors, judge, own_errors
from stages.stage import Reached
from storage.ending import Failed, TimedOut
from tests.builders import conversion
from tests.daemon.ends import cells

OUTCOME = Reached(conversion())


def around(circumstance: str) -> Circumstances:
    """Return the circumstances of that name, one of the table's."""
    return Circumstances(
        lease_ended=circumstance == "lease",
        limit_ended=circumstance == "limit",
        limit_seconds=90.0,
        stop_asked=circumstance == "stop",
        ring_cancelled=circumstance in ("stop", "crash"),
    )


async def fail_in_cleanup() -> None:
    """Fail while what was cancelled cleans up."""
    try:
        await trio.sleep_forever()
    finally:
        raise OSError("cleanup")


async def fail_twice_in_cleanup() -> None:
    """Gather what went wrong while what was cancelled cleans up."""
    try:
        await trio.sleep_forever()
    finally:
        raise ExceptionGroup("closing", [OSError("cleanup")])


async def fail_in_a_task_of_cleanup() -> None:
    """Fail in a task that the cleanup starts."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(err, OSError("cleanup"))


async def hang_in_nursery() -> None:
    """Hang in two tasks and the body of their nursery."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.start_soon(trio.sleep_forever)
        await trio.sleep_forever()


async def miss_a_deadline() -> None:
    """Miss a deadline of one's own."""
    with trio.fail_after(0):
        await trio.sleep_forever()


async def beside_the_cancel(error: BaseException) -> None:
    """Raise an error of one's own in a task while another is cancelled."""
    cancelled = trio.Event()

    async def be_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async def finish() -> None:
        with trio.CancelScope(shield=True):
            await cancelled.wait()
        raise error

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_cancelled)
        nursery.start_soon(finish)
        await trio.sleep_forever()


async def err(error: BaseException) -> None:
    """Raise at once."""
    raise error


RAISING: dict[str, Callable[[], Awaitable[None]]] = {
    "own": lambda: err(ValueError("own")),
    "own deadline": miss_a_deadline,
    "cancelled + own": lambda: beside_the_cancel(ValueError("own")),
    "cleanup": fail_in_cleanup,
    "cleanup's group": fail_twice_in_cleanup,
    "cleanup's task": fail_in_a_task_of_cleanup,
    "cancelled": trio.sleep_forever,
    "nursery": hang_in_nursery,
    "interrupt": lambda: err(KeyboardInterrupt()),
    "exit": lambda: err(SystemExit(3)),
    "cancelled + exit": lambda: beside_the_cancel(SystemExit(3)),
}


async def what_rises(ended_by: str, *, cancelled: bool = True) -> BaseException | None:
    """Return what really rises out of such a stage, cancelled from beyond it or not."""
    if ended_by not in RAISING:
        return None
    with trio.CancelScope() as scope:
        if cancelled:
            scope.cancel()
        try:
            await RAISING[ended_by]()
        except BaseException as error:  # noqa: BLE001 - whatever rises is what is looked at
            return error
    raise AssertionError("nothing rose")


@pytest.mark.parametrize(("ended_by", "circumstance", "end"), cells())
async def test_the_order_of_the_verdict(ended_by: str, circumstance: str, end: str) -> None:
    """The stage's outcome, its own error, the lease, the limit, the stop, and then anything else."""
    raised = await what_rises(ended_by, cancelled=circumstance != "none")
    outcome = OUTCOME if ended_by == "returned" else None
    assert type(judge(outcome, raised, around(circumstance))).__name__ == end


def test_the_table_is_whole() -> None:
    """A pair that can be and is not in the table would be tested by nobody."""
    assert {ended_by for ended_by, _, _ in cells()} == {*RAISING, "returned", "nothing"}
    assert len(cells()) == 13 * 5 - 11


async def test_a_mixed_group_names_the_stage_own_error() -> None:
    """Beside a cancel stands what went wrong; that is the cause, and no cleanup of anything."""
    raised = await what_rises("cancelled + own")
    assert judge(None, raised, around("stop")) == Failed("ValueError: own")
    assert [str(error) for error in own_errors(raised, around("stop"))] == ["own"]
    assert cleanup_errors(None, raised, around("stop")) == []


@pytest.mark.parametrize("ended_by", ["cleanup", "cleanup's group"])
async def test_an_error_of_the_cleanup_is_told_apart_from_the_stage_own(ended_by: str) -> None:
    """It is worth a line and passes no verdict, wherever in the cleanup it arose."""
    raised = await what_rises(ended_by)
    assert [str(error) for error in cleanup_errors(None, raised, around("stop"))] == ["cleanup"]
    assert own_errors(raised, around("stop")) == []


async def test_an_error_after_the_outcome_is_the_cleanup_s() -> None:
    """The outcome stands, and what the end of the attempt could not clear away is told."""
    raised = await what_rises("own", cancelled=False)
    assert judge(OUTCOME, raised, around("none")) == OUTCOME
    assert cleanup_errors(OUTCOME, raised, around("none")) == [raised]


async def test_an_error_raised_from_a_handled_cancel_is_cleanup() -> None:
    """Also when it says so itself, through several errors and a group."""
    cancelled = await what_rises("nursery")
    assert isinstance(cancelled, BaseExceptionGroup)
    middle = RuntimeError("middle")
    middle.__cause__ = cancelled
    cancelled.__context__ = middle  # a circle, as a careless `raise ... from` makes them
    last = ValueError("last")
    last.__context__ = middle
    assert own_errors(last, around("limit")) == []
    assert own_errors(last, around("none")) == [last]


async def test_a_cancel_that_nobody_sent_is_no_give_back() -> None:
    """A stop that is asked for has not cancelled anything as long as the grace lasts."""
    raised = await what_rises("cancelled")
    grace = Circumstances(
        lease_ended=False, limit_ended=False, limit_seconds=90, stop_asked=True, ring_cancelled=False
    )
    assert isinstance(judge(None, raised, grace), Failed)


def test_the_reasons_are_for_a_person() -> None:
    """What ended an attempt is told in its own words."""
    assert judge(None, None, around("limit")) == TimedOut("the attempt took more than the 90 s it may take")
    assert judge(None, None, around("none")) == Failed("the stage came to no outcome; what ended it: nothing")
    assert judge(None, SystemExit(3), around("crash")) == Failed(
        "the stage came to no outcome; what ended it: SystemExit: 3"
    )


def test_a_cause_is_one_line_that_any_column_holds() -> None:
    """Whatever an error says: no line break, no NUL, no half a character, no end of it."""
    assert cause_of(ValueError("a\n  b\0c\ud800")) == "ValueError: a b\N{REPLACEMENT CHARACTER}c?"
    assert cause_of(ValueError()) == "ValueError:"
    assert len(cause_of(ValueError("x" * 10_000))) == LONGEST_CAUSE

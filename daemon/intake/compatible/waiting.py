"""A call that lasts until its record has come to its end: done, or stopped, or the call's time is up."""

from http import HTTPStatus
from uuid import UUID

import trio

from daemon.intake.changes import LOOK_SECONDS
from daemon.intake.operations import Asked
from daemon.intake.problems import Problem
from storage.readiness import Readiness
from storage.record import Milestone, StopCode

# What a client is told to be its own recording's fault.
_OF_THE_RECORDING = (StopCode.NOT_MEDIA, StopCode.NO_AUDIO, StopCode.TOO_LONG, StopCode.SILENT)
_RETRY_STOPPING = 10
_RETRY_RUNNING = 30


async def outcome(asked: Asked, record_id: UUID, until: float) -> Readiness:
    """Return the record once it is done; raises Problem when it is stopped, or not done in time."""
    changes = asked.doors.polls.changes
    with changes.watching(record_id) as watch:
        while True:
            change = trio.Event() if watch is None else watch.next_change
            readiness = await asked.doors.polls.look(record_id, asked.account, with_text=False)
            if ended(readiness):
                return await asked.doors.polls.look(record_id, asked.account)
            left = until - trio.current_time()
            if asked.doors.stopping() or left <= 0:
                raise not_yet(readiness, stopping=asked.doors.stopping())
            longest = LOOK_SECONDS if watch is None else changes.longest_trust
            with trio.move_on_after(min(left, longest)):
                await change.wait()


def ended(readiness: Readiness) -> bool:
    """Tell whether a record is done; raises Problem for one that is stopped."""
    if readiness.stop is not None:
        code = readiness.stop.code
        of_it = code in _OF_THE_RECORDING
        status = HTTPStatus.BAD_REQUEST if of_it else HTTPStatus.UNPROCESSABLE_ENTITY
        raise Problem(status, code.value, f"{code.message} The record is {readiness.id}.")
    return readiness.milestone is Milestone.DONE


def not_yet(readiness: Readiness, *, stopping: bool) -> Problem:
    """Say that the text is not there yet, and that the record is."""
    where = f"nothing is lost: the same request sent again goes on with the record {readiness.id}"
    if stopping:
        status, code, retry = HTTPStatus.SERVICE_UNAVAILABLE, "stopping", _RETRY_STOPPING
        detail = f"The service is stopping, and {where}."
    else:
        status, code, retry = HTTPStatus.GATEWAY_TIMEOUT, "still_running", _RETRY_RUNNING
        detail = f"The recording takes longer than this call may, and {where}."
    return Problem(status, code, detail, headers={"Retry-After": str(retry)})

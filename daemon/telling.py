"""How an attempt's end is told: one entry in the owner's log, one mark, the facts of its event."""

from typing import Final, assert_never

import structlog

from daemon.metrics import Mark
from stages.stage import Stage
from storage.claim import ClaimLost
from storage.claims import Settled
from storage.ending import Deferred, Ending, Failed, GivenBack, Hopeless, Reached, TimedOut
from storage.record import Record

log = structlog.get_logger()

MARKS: Final[dict[type[Ending], Mark]] = {
    Reached: Mark.SUCCESS,
    Deferred: Mark.DEFERRED,
    Hopeless: Mark.HOPELESS,
    Failed: Mark.FAILURE,
    TimedOut: Mark.TIMED_OUT,
    GivenBack: Mark.GIVEN_BACK,
    ClaimLost: Mark.LOST,
}


def tell(ending: Ending, settled: Settled, stage: Stage, record: Record) -> None:
    """Say in the owner's log how a settled attempt ended; a failure was told where it was found."""
    match ending:
        case Reached():
            log.info("record.reached", reached=str(stage.gives))
        case Deferred(delay, _, state) if settled.stopped is None:
            log.debug("record.deferred", delay_seconds=delay, state=state)
        case Deferred(_, _, state):
            said = f"still in progress after the time it may take; it last said: {state or 'nothing'}"
            log.error("record.stopped", code=str(settled.stopped), reason=said)
        case Hopeless(code, reason):
            log.error("record.stopped", code=str(code), reason=reason)
        case TimedOut(cause):
            log.warning("record.timed_out", reason=cause, failures=record.failures)
        case GivenBack(why):
            log.info("record.given_back", reason=why)
        case Failed() | ClaimLost():
            pass  # told where it was found
        case _:
            assert_never(ending)


def facts_of(ending: Ending, stage: Stage, seconds: float) -> dict[str, object]:
    """Return what the event of this end keeps."""
    facts: dict[str, object] = {"stage": stage.name, "seconds": round(seconds, 3)}
    match ending:
        case Failed(cause) | TimedOut(cause) | GivenBack(cause):
            facts["cause"] = cause
            if isinstance(ending, Failed) and ending.fault is not None:
                facts["fault"] = ending.fault
        case Deferred(delay, _, state):
            facts |= {"delay": delay, "state": state}
        case Hopeless() | Reached() | ClaimLost():
            pass
        case _:
            assert_never(ending)
    return facts

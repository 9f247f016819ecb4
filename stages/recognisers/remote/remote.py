"""A recogniser elsewhere as the stages know any recogniser: what all of them do is done here, once.

Each attempt opens the endpoint for itself, so nothing of a call outlives its claim. An attempt for which a
quota has nothing left is given back. After a call that came to nothing the endpoint is asked whether it is
there at all: if it is not, that is nobody's failure but the lane's.
"""

from typing import Any, Protocol

import trio
from attrs import frozen

from stages.recognisers.recogniser import Finished, InProgress
from stages.recognisers.remote.endpoint import Calls, Endpoint
from stages.recognisers.remote.errors import CallFailed, EndpointAway, PutOffError
from stages.stage import Allowance, GivenBack, Hopeless, Tools
from storage.record import Record

LOOK_SECONDS = 20.0


class Service(Protocol):
    """What a file under stages/recognisers/ has to know of one service; the rest is common to all.

    A step makes as few calls as it can, best one: what it returns is saved before the next step, and a step
    that was cut off is done again from what was saved. Before a call that begins something the other side
    keeps, a step of its own returns with the intent in the operation.
    """

    @property
    def name(self) -> str:
        """Its name in records and settings, which is also the name of its lane."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""

    async def begin(self, record: Record, tools: Tools) -> dict[str, Any] | Hopeless:
        """Return the operation's first state, as JSON; nothing is called yet."""

    async def advance(
        self, record: Record, operation: dict[str, Any], tools: Tools, calls: Calls
    ) -> InProgress | Finished | Hopeless:
        """Take the operation one step on; safe to be cancelled, and to be done again."""

    async def look(self, calls: Calls) -> None:
        """Make a call that costs nothing; whatever is answered, the endpoint is there. Else it raises."""

    def time_limit(self, record: Record) -> float:
        """Return the seconds that one step may take."""

    def whole_limit(self, record: Record) -> float:
        """Return the seconds after which an operation on this record, with its retries, is judged lost."""


class _Unlimited:
    """To see whether a service is there takes nothing of its quota."""

    async def take(self, allowance: Allowance) -> float:
        del allowance
        await trio.lowlevel.checkpoint()
        return 0.0

    async def pause(self, name: str, seconds: float) -> None:
        del name, seconds  # the next call of an attempt's own will learn it
        await trio.lowlevel.checkpoint()


@frozen
class Remote:
    """A service as a `Recogniser`."""

    service: Service

    @property
    def name(self) -> str:
        """The service's name."""
        return self.service.name

    async def begin(self, record: Record, tools: Tools) -> dict[str, Any] | Hopeless:
        """Begin the operation: a word in the row, with which nobody else is told anything yet."""
        return await self.service.begin(record, tools)

    async def advance(
        self, record: Record, operation: dict[str, Any], tools: Tools
    ) -> InProgress | Finished | Hopeless | GivenBack:
        """Take the operation one step on."""
        try:
            async with self.service.endpoint.opened(tools.quotas) as calls:
                return await self.service.advance(record, operation, tools, calls)
        except PutOffError as put_off:
            return GivenBack(str(put_off), put_off.seconds)
        except CallFailed as failed:
            await self._see_whose_fault(failed)
            raise

    def time_limit(self, record: Record) -> float:
        """Return the service's own limit, and the time of a look at the endpoint."""
        return self.service.time_limit(record) + LOOK_SECONDS

    def whole_limit(self, record: Record) -> float:
        """Return the service's own limit."""
        return self.service.whole_limit(record)

    async def check_means(self) -> None:
        """Raise MeansAway when the endpoint is not there, or does not let us in."""
        await self._look()

    async def _see_whose_fault(self, failed: CallFailed) -> None:
        try:
            await self._look()
        except EndpointAway as away:
            raise EndpointAway(f"{failed}; and {away}") from failed

    async def _look(self) -> None:
        try:
            with trio.fail_after(LOOK_SECONDS):
                async with self.service.endpoint.opened(_Unlimited()) as calls:
                    await self.service.look(calls)
        except PutOffError:
            return  # it has too much to do, so it is there
        except (CallFailed, trio.TooSlowError) as error:
            why = str(error) or f"it did not answer within {LOOK_SECONDS:.0f} s"
            raise EndpointAway(f"{self.name} is not in service: {why}") from error

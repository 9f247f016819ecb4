"""What goes wrong, where, and how often: what a test asks of an emulator."""

from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field, frozen
from cattrs import Converter

from tests.emulators.serving import PLAIN, Manner, Reply

_converter = Converter(forbid_extra_keys=True)


@frozen(kw_only=True)
class Fault:
    """Something goes wrong with calls of the operation `at`: after `passing` others, so many `times`.

    With a `status` that is the answer, and nothing is done for the call; without one what was asked for is
    done, unless it is `unheard`, and the answer goes out in the `manner`. `cut` may count from the end.
    """

    at: str
    times: int = 1
    passing: int = 0
    status: int | None = None
    headers: Mapping[str, str] = field(factory=dict)
    body: str = ""
    unheard: bool = False
    manner: Manner = PLAIN


@define
class Faults:
    """Those that are still to come, in the order in which they were asked for."""

    _left: list[Fault] = field(factory=list)

    def add(self, fault: Fault) -> None:
        """Have it happen."""
        self._left.append(fault)

    def clear(self) -> None:
        """Have nothing more go wrong."""
        self._left.clear()

    def next(self, operation: str) -> Fault | None:
        """Return what goes wrong with this call of `operation`, if anything does."""
        for number, fault in enumerate(self._left):
            if fault.at not in (operation, "*"):
                continue
            if fault.passing:
                self._left[number] = evolve(fault, passing=fault.passing - 1)
                continue
            if fault.times > 1:
                self._left[number] = evolve(fault, times=fault.times - 1)
            else:
                del self._left[number]
            return fault
        return None


def fault_from_json(raw: Mapping[str, Any]) -> Fault:
    """Return a fault as it was sent; raises when it is none."""
    return _converter.structure(raw, Fault)


def fault_to_json(fault: Fault) -> dict[str, Any]:
    """Return a fault to be sent."""
    return dict(_converter.unstructure(fault))


def answer_of(fault: Fault) -> Reply | None:
    """Return the answer that a fault has, if it has one."""
    if fault.status is None:
        return None
    headers = {"Content-Type": "application/json", **fault.headers}
    return Reply(status=fault.status, headers=headers, body=fault.body.encode())


def manner_of(fault: Fault, reply: Reply) -> Manner:
    """Return the manner of a reply, with a cut that counted from its end counted from its beginning."""
    cut = fault.manner.cut
    if cut is None or cut >= 0:
        return fault.manner
    return evolve(fault.manner, cut=max(0, len(reply.body) + cut))

"""Wrong tokens, counted by where they come from: whoever tries them out is soon told to wait, unasked.

A secret cannot be guessed anyway; this keeps the trying off the database and puts it into the log. Whoever
brought a right token lately is not held up by a neighbour behind the same address. On the service's own
socket stands somebody whom the service owner let in, a proxy mostly, and nobody is counted there.
"""

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address

import structlog
import trio
from attrs import define

_MOST_SOURCES = 4096
_MOST_RIGHT = 4096
_MINUTE = 60.0
_NET_BITS = 64  # what one household or office has of IPv6

log = structlog.get_logger()


@define
class _Allowance:
    """How many more wrong tokens a source may bring at `at`."""

    left: float
    at: float


class WrongTokens:
    """`most` a minute from one source."""

    def __init__(self, most: int) -> None:
        """Begin with nobody having tried anything."""
        self._most = most
        self._sources: OrderedDict[str, _Allowance] = OrderedDict()
        self._right: OrderedDict[bytes, None] = OrderedDict()

    def wait_seconds(self, source: str | None, secret_sha256: bytes) -> float:
        """Return how long this one must wait before its token is looked at; mostly 0."""
        if source is None or secret_sha256 in self._right:
            return 0.0
        allowance = self._sources.get(_named(source))
        if allowance is None:
            return 0.0
        self._refill(allowance)
        return max(0.0, (1 - allowance.left) * _MINUTE / self._most)

    def right(self, secret_sha256: bytes) -> None:
        """Note a token that opened the doors."""
        self._right[secret_sha256] = None
        self._right.move_to_end(secret_sha256)
        if len(self._right) > _MOST_RIGHT:
            self._right.popitem(last=False)

    def wrong(self, source: str | None, secret_sha256: bytes) -> None:
        """Note one that did not."""
        self._right.pop(secret_sha256, None)
        if source is None:
            return
        name = _named(source)
        allowance = self._sources.setdefault(name, _Allowance(float(self._most), trio.current_time()))
        self._sources.move_to_end(name)
        if len(self._sources) > _MOST_SOURCES:
            self._sources.popitem(last=False)
        self._refill(allowance)
        before, allowance.left = allowance.left, max(0.0, allowance.left - 1)
        if before >= 1 > allowance.left:
            log.warning("tokens.refused", source=name, a_minute=self._most)

    def _refill(self, allowance: _Allowance) -> None:
        now = trio.current_time()
        gained = (now - allowance.at) * self._most / _MINUTE
        allowance.left, allowance.at = min(float(self._most), allowance.left + gained), now


def _named(source: str) -> str:
    """Return the address that stands for all that one sender can have."""
    try:
        address = ip_address(source.partition("%")[0])
    except ValueError:
        return source
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    host_bits = 128 - _NET_BITS
    return f"{IPv6Address(int(address) >> host_bits << host_bits)}/{_NET_BITS}"

"""How often passwords were tried: whoever tries many is told to wait, before anything is computed for it."""

import hashlib

from attrs import define, field

from daemon.intake.wrong_tokens import WrongTokens

MOST_FROM_AN_ADDRESS, MOST_FOR_AN_ACCOUNT = 20, 10  # tries a minute


@define(eq=False)
class Tries:
    """How often passwords were tried, from each address and for each account.

    Whoever signed in rightly from the same address lately is not held up by others who try the account.
    """

    addresses: WrongTokens = field(factory=lambda: WrongTokens(MOST_FROM_AN_ADDRESS))
    accounts: WrongTokens = field(factory=lambda: WrongTokens(MOST_FOR_AN_ACCOUNT))

    def wait_seconds(self, address: str | None, name: str) -> float:
        """Count a try, before it is made; return how long it must wait, mostly 0."""
        pair = _pair(address, name)
        wait = max(self.addresses.wait_seconds(address, pair), self.accounts.wait_seconds(_named(name), pair))
        if not wait:
            self.addresses.wrong(address, pair)
            self.accounts.wrong(_named(name), pair)
        return wait

    def right(self, address: str | None, name: str) -> None:
        """Note that somebody signed in from there."""
        self.accounts.right(_pair(address, name))


def _pair(address: str | None, name: str) -> bytes:
    return hashlib.sha256(f"{address}\0{name}".encode("utf-8", "surrogatepass")).digest()


def _named(name: str) -> str:
    return f"account {name}"

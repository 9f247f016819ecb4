"""Passwords: made into argon2id hashes and held against them, in threads, a few at a time.

Somebody unknown costs as much time as a wrong password, so that the time tells nobody who has an account.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import trio
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

from storage.errors import Refused

LEAST_LETTERS, MOST_LETTERS = 8, 1000
_AT_ONCE = 2  # each takes a core and 64 MB
_MOST_WAITING = 32

T = TypeVar("T")
_HASHER = PasswordHasher(time_cost=3, memory_cost=64 * 1024, parallelism=1)
_threads = trio.CapacityLimiter(_AT_ONCE)


def check_password(password: str) -> None:
    """Raise Refused for a password that nobody should have."""
    if not LEAST_LETTERS <= len(password) <= MOST_LETTERS:
        raise Refused(
            f"a password has {LEAST_LETTERS} to {MOST_LETTERS} letters, this has {len(password)}; "
            "choose another"
        )


async def hash_password(password: str) -> str:
    """Return what is kept of a password."""
    return await _in_thread(lambda: _HASHER.hash(_bytes(password)))


async def is_password(password_hash: str | None, password: str) -> bool:
    """Tell whether this is the password; with no hash it takes as long and is not."""
    return await _in_thread(lambda: _verified(password_hash, password))


def is_outdated(password_hash: str) -> bool:
    """Tell whether a hash was made at another cost than today's."""
    return _HASHER.check_needs_rehash(password_hash)


def _verified(password_hash: str | None, password: str) -> bool:
    try:
        _HASHER.verify(password_hash or _nobody_s(), _bytes(password))
    except (VerifyMismatchError, VerificationError, InvalidHashError):
        return False
    return password_hash is not None


@cache
def _nobody_s() -> str:
    return _HASHER.hash(b"whose password this is has no account here")


def _bytes(password: str) -> bytes:
    return password[:MOST_LETTERS].encode("utf-8", "surrogatepass")


class TooManyPasswords(Exception):
    """So many are being held against their hashes that this one would wait too long."""


async def _in_thread(work: Callable[[], T]) -> T:
    if _threads.statistics().tasks_waiting >= _MOST_WAITING:
        raise TooManyPasswords
    return await trio.to_thread.run_sync(work, limiter=_threads)

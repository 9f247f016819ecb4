"""Browsers at the doors: a session's cookie in place of a token, as long as the request is the page's own.

A browser sends a cookie along whoever had the request made. So a request that changes something counts only
when the browser says that it comes from a page of ours, and when it brings what only such a page knows.
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

from attrs import define, field
from starlette.requests import Request

from daemon.intake.problems import Problem
from daemon.intake.together import Together
from storage.account import Account
from storage.accounts import hash_of
from storage.database import Database
from storage.sessions import Lasting, accounts_of_sessions

PROOF = "rubezh-csrf"
"""The header, or the field of a form, with what only a page of ours knows."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_NAME, _LONGEST_SECRET = "rubezh", 200


@define(kw_only=True, eq=False)
class Browsers:
    """`address` is where people find the panel, `https://rubezh.example`; empty: wherever they come."""

    database: Database
    address: str = ""
    lasting: Lasting = field(factory=Lasting)
    sessions: Together[bytes, Account] = field(init=False, repr=False)

    @sessions.default
    def _ask_together(self) -> Together[bytes, Account]:
        return Together(partial(accounts_of_sessions, self.database, self.lasting))

    async def account(self, request: Request) -> Account | None:
        """Return who is signed in at the browser that sent this."""
        secret = self.secret(request)
        return None if secret is None else await self.sessions.ask(hash_of(secret))

    def secret(self, request: Request) -> str | None:
        """Return the secret in a request's cookie."""
        secret = request.cookies.get(self.cookie_name(request), "")
        return secret if 0 < len(secret) <= _LONGEST_SECRET else None

    def cookie_name(self, request: Request) -> str:
        """Return what the session's cookie is called; over HTTPS so that nobody but this host can set it."""
        return f"__Host-{_NAME}" if self.is_private(request) else _NAME

    def cookie(self, request: Request, secret: str | None) -> str:
        """Return the header that has a browser keep a session, or forget it."""
        seconds = 0 if secret is None else int(self.lasting.longest_seconds)
        private = "; Secure" if self.is_private(request) else ""
        name = self.cookie_name(request)
        return f"{name}={secret or ''}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{private}"

    def is_private(self, request: Request) -> bool:
        """Tell whether the browser speaks HTTPS: to a proxy, as we do not.

        On the service's own socket stands a proxy that the service owner let in, and what it says counts.
        """
        if self.address:
            return self.address.startswith("https:")
        return request.scope["server"] is None and request.headers.get("x-forwarded-proto") == "https"

    def is_from_us(self, request: Request) -> bool:
        """Tell whether the browser says that a page of ours had this sent, or a person did."""
        site = request.headers.get("sec-fetch-site")
        if site is not None:
            return site == "same-origin" or (site == "none" and request.method in _SAFE)
        origin = request.headers.get("origin")
        if origin is None:
            return request.method in _SAFE
        known = {self.address.lower()} if self.address else set()
        return origin.lower() in known or urlsplit(origin).netloc.lower() == request.headers.get("host", "")


def proof_of(secret: str) -> str:
    """Return what a page of this session sends along, which tells nothing of the secret."""
    digest = hashlib.sha256(f"rubezh csrf {secret}".encode("utf-8", "surrogatepass")).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def is_proof(given: str, secret: str) -> bool:
    """Tell whether a page of this session sent it."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), proof_of(secret).encode())


async def signed_in(browsers: Browsers, request: Request) -> Account | None:
    """Return who is signed in where no token is sent; raises Problem for what no page of ours had sent."""
    secret = browsers.secret(request)
    if secret is None or (account := await browsers.account(request)) is None:
        return None
    changes = request.method not in _SAFE
    if not browsers.is_from_us(request) or (changes and not is_proof(request.headers.get(PROOF, ""), secret)):
        raise forged()
    return account


def forged() -> Problem:
    """Say that a request was not made by a page of ours."""
    detail = "The request does not come from a page of this service; open the page anew and try again."
    return Problem(HTTPStatus.FORBIDDEN, "forged", detail)

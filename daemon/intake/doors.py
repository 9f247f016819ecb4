"""What the routes share: the parts of the service they stand on, and who is asking."""

import math
from collections.abc import Callable
from http import HTTPStatus
from uuid import UUID

from attrs import define, field
from starlette.applications import Starlette
from starlette.requests import Request

from daemon.intake.browsers import Browsers, signed_in
from daemon.intake.places import Places
from daemon.intake.polls import Polls
from daemon.intake.problems import Problem, come_again, no_such_record, stopping
from daemon.intake.turns import Turns
from daemon.intake.wrong_tokens import WrongTokens
from daemon.settings import IntakeSettings
from storage.account import Account
from storage.accounts import hash_of
from storage.audio import Store
from storage.database import Database
from storage.entries import Entered, Entry, Look


@define(kw_only=True, eq=False)
class Doors:
    """`lane` is the first stage's; `settings` bound what is received, and may be replaced meanwhile.

    `browsers`: who is signed in; None where there is no panel, and then a cookie opens nothing.
    What is counted from the start on (the places, the wrong tokens) goes by the first settings.
    """

    database: Database
    store: Store
    lane: str
    settings: IntakeSettings
    stopping: Callable[[], bool]
    polls: Polls
    browsers: Browsers | None = None
    places: Places = field(init=False, eq=False, repr=False)
    turns: Turns = field(factory=Turns, init=False, eq=False, repr=False)
    wrong_tokens: WrongTokens = field(init=False, eq=False, repr=False)

    @places.default
    def _make_places(self) -> Places:
        return Places(self.settings.open_uploads, self.settings.account_uploads)

    @wrong_tokens.default
    def _count_wrong_tokens(self) -> WrongTokens:
        return WrongTokens(self.settings.wrong_tokens)


def open_doors(request: Request) -> Doors:
    """Return the doors for somebody who brings something: a service that stops takes nothing new."""
    doors = doors_of(request)
    if doors.stopping():
        raise stopping("The service is stopping; try again in a moment.")
    return doors


def adopt(app: Starlette, settings: IntakeSettings) -> None:
    """Have the doors of a running application go by these settings from now on."""
    app.state.doors.settings = settings


def doors_of(request: Request) -> Doors:
    """Return the doors a request came through."""
    doors = request.app.state.doors
    assert isinstance(doors, Doors)  # noqa: S101 - Starlette's state takes anything
    return doors


async def asker(request: Request) -> Account:
    """Return the account whose token the request carries, or whose session; other routes begin with this.

    A token that is wrong, revoked, expired or of a disabled account is answered like none at all.
    """
    return (await entered(request)).account


async def entered(request: Request, look: Look | None = None) -> Entered:
    """Do as `asker` does, and look at a record in the same call to the database."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secret:
        found = await _opened(request, Entry(hash_of(secret.strip()), look))
        if found is not None:
            return found
    elif not scheme and (found := await _signed_in(request, look)) is not None:
        return found
    raise Problem(
        HTTPStatus.UNAUTHORIZED,
        "unauthorized",
        "The request carries no valid token; send one as Authorization: Bearer <token>.",
        headers={"WWW-Authenticate": 'Bearer realm="rubezh"'},
    )


async def _signed_in(request: Request, look: Look | None) -> Entered | None:
    """Do the same for the session of a browser; raises Problem where no page of ours had the request sent."""
    doors = doors_of(request)
    if doors.browsers is None or (account := await signed_in(doors.browsers, request)) is None:
        return None
    return Entered(account, None if look is None else await doors.polls.find(look))


async def _opened(request: Request, entry: Entry) -> Entered | None:
    """Look a token up; raises Problem where too many wrong ones came from."""
    doors, secret_sha256 = doors_of(request), entry.secret_sha256
    source = None if request.client is None else request.client.host
    if wait := doors.wrong_tokens.wait_seconds(source, secret_sha256):
        detail = "Too many wrong tokens came from this address; wait, and send a valid one."
        seconds = math.ceil(wait)
        raise come_again(HTTPStatus.TOO_MANY_REQUESTS, "too_many_wrong_tokens", detail, seconds)
    found = await doors.polls.entries.ask(entry)
    if found is None:
        doors.wrong_tokens.wrong(source, secret_sha256)
    else:
        doors.wrong_tokens.right(secret_sha256)
    return found


def asked_record(request: Request) -> UUID:
    """Return the id in the request's path; one that cannot be an id of ours is an unknown record."""
    text = request.path_params["id"]
    try:
        record_id = UUID(text)
    except ValueError:
        raise no_such_record() from None
    if str(record_id) != text.lower():
        raise no_such_record()
    return record_id

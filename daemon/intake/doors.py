"""What the routes share: the parts of the service they stand on, and who is asking."""

from collections.abc import Callable
from http import HTTPStatus
from uuid import UUID

import trio
from attrs import field, frozen
from starlette.requests import Request

from daemon.intake.problems import Problem, no_such_record
from storage.account import Account
from storage.accounts import account_of_secret
from storage.audio import Store
from storage.database import Database


@frozen(kw_only=True)
class Doors:
    """`lane` is the first stage's; `largest_bytes` and `open_uploads` bound what is received."""

    database: Database
    store: Store
    lane: str
    largest_bytes: int
    open_uploads: int
    stopping: Callable[[], bool]
    uploads: trio.Semaphore = field(init=False, eq=False, repr=False)

    @uploads.default
    def _make_uploads(self) -> trio.Semaphore:
        return trio.Semaphore(self.open_uploads)


def doors_of(request: Request) -> Doors:
    """Return the doors a request came through."""
    doors = request.app.state.doors
    assert isinstance(doors, Doors)  # noqa: S101 - Starlette's state takes anything
    return doors


async def asker(request: Request) -> Account:
    """Return the account whose token the request carries; every route but the sign of life begins with this.

    A token that is wrong, revoked, expired or of a disabled account is answered like none at all.
    """
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secret:
        account = await account_of_secret(doors_of(request).database, secret.strip())
        if account is not None:
            return account
    raise Problem(
        HTTPStatus.UNAUTHORIZED,
        "unauthorized",
        "The request carries no valid token; send one as Authorization: Bearer <token>.",
        headers={"WWW-Authenticate": 'Bearer realm="rubezh"'},
    )


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

"""Signing in, by password or by a link that works once; and out, here or everywhere.

A session is always made anew: what secret a browser had before it signed in counts for nothing afterwards.
"""

import math
from http import HTTPStatus

import structlog
from starlette.responses import JSONResponse, Response

from daemon.panel.page import For, Page, Visit
from daemon.panel.visiting import SIGN_IN, go_to, ours
from daemon.passwords import TooManyPasswords, hash_password, is_outdated, is_password
from storage.account import Account
from storage.sessions import (
    begin_session,
    end_session,
    end_sessions,
    read_link,
    read_password,
    rehash_password,
    use_link,
)

_LONGEST_NAME = 500

log = structlog.get_logger()


async def show_sign_in(visit: Visit) -> Response:
    """Ask who it is."""
    asked = visit.request.query_params
    if visit.signed_in is not None:
        return go_to(ours(asked.get("next", "")))
    said = asked.get("said", "")
    return _form(visit, said if said in ("again", "out") else "")


async def sign_in(visit: Visit) -> Response:
    """Sign somebody in by a password."""
    form, doors = visit.form, visit.doors
    name, password = form.one("name")[:_LONGEST_NAME], form.one("password")
    address, tries = visit.address, visit.tries
    if wait := tries.wait_seconds(address, name):
        return _form(visit, "too_many", HTTPStatus.TOO_MANY_REQUESTS, seconds=math.ceil(wait))
    found = await read_password(doors.database, name)
    password_hash = None if found is None else found[1]
    try:
        is_right = await is_password(password_hash, password)
    except TooManyPasswords:
        return _form(visit, "busy", HTTPStatus.SERVICE_UNAVAILABLE)
    if not is_right or found is None or found[0].disabled_at is not None:
        log.info("sign_in.refused", account=name, source=address)
        return _form(visit, "wrong", HTTPStatus.UNPROCESSABLE_ENTITY)
    tries.right(address, name)
    if password_hash is not None and is_outdated(password_hash):
        await rehash_password(doors.database, found[0].id, password_hash, await hash_password(password))
    return await _begun(visit, found[0], ours(form.one("next")), by="password")


async def show_link(visit: Visit) -> Response:
    """Say whom a link would sign in; it is used by a press of the button, and not by looking at it."""
    account = await read_link(visit.doors.database, visit.request.path_params["secret"])
    if account is None:
        return visit.page("link.html", HTTPStatus.NOT_FOUND, whom=None)
    return visit.page("link.html", whom=account.name)


async def sign_in_by_link(visit: Visit) -> Response:
    """Sign somebody in by a link, and use it up."""
    account = await use_link(visit.doors.database, visit.request.path_params["secret"])
    if account is None:
        return visit.page("link.html", HTTPStatus.NOT_FOUND, whom=None)
    return await _begun(visit, account, "/records", by="link")


async def show_proof(visit: Visit) -> Response:
    """Tell a page that was loaded under an earlier session what the present one sends along."""
    return JSONResponse({"proof": visit.proof, "account": str(visit.account.id)})


async def sign_out(visit: Visit) -> Response:
    """Sign this browser out."""
    secret = visit.browsers.secret(visit.request)
    if secret is not None:
        await end_session(visit.doors.database, secret)
    return _gone(visit)


async def sign_out_everywhere(visit: Visit) -> Response:
    """Sign every browser of the account out."""
    await end_sessions(visit.doors.database, visit.account.id)
    log.info("sign_in.ended", account=visit.account.name, owner=str(visit.account.id))
    return _gone(visit)


async def _begun(visit: Visit, account: Account, back: str, *, by: str) -> Response:
    browsers, database = visit.browsers, visit.doors.database
    before = browsers.secret(visit.request)
    secret = await begin_session(database, account.id, browsers.lasting)
    if secret is None:
        return _form(visit, "wrong", HTTPStatus.UNPROCESSABLE_ENTITY)
    if before is not None:
        await end_session(database, before)
    log.info("sign_in.done", account=account.name, owner=str(account.id), by=by)
    response = go_to(back)
    response.headers.append("Set-Cookie", browsers.cookie(visit.request, secret))
    return response


def _gone(visit: Visit) -> Response:
    response = go_to(f"{SIGN_IN}?said=out")
    response.headers.append("Set-Cookie", visit.browsers.cookie(visit.request, None))
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


def _form(visit: Visit, said: str, status: int = HTTPStatus.OK, **facts: object) -> Response:
    words = visit.words
    back = visit.request.query_params.get("next", "") or visit.form.one("next")
    return visit.page(
        "sign_in.html",
        status,
        said=words.say(f"sign_in.{said}", **facts) if said else "",
        is_fault=said not in ("", "out", "again"),
        name=visit.form.one("name")[:_LONGEST_NAME],
        back=ours(back),
    )


PAGES = (
    Page(method="GET", path=SIGN_IN, handler=show_sign_in, who=For.ANYBODY),
    Page(method="POST", path=SIGN_IN, handler=sign_in, who=For.ANYBODY),
    Page(method="GET", path=SIGN_IN + "/{secret}", handler=show_link, who=For.ANYBODY),
    Page(method="POST", path=SIGN_IN + "/{secret}", handler=sign_in_by_link, who=For.ANYBODY),
    Page(method="GET", path="/proof", handler=show_proof),
    Page(method="POST", path="/sign-out", handler=sign_out),
    Page(method="POST", path="/sign-out-everywhere", handler=sign_out_everywhere),
)

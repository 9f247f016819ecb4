"""One's account: tokens for programs, the password, and every browser that is signed in."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import structlog
from starlette.responses import Response

from daemon.intake.doors import asked_record
from daemon.intake.problems import no_such_record
from daemon.panel.page import Page, Visit
from daemon.panel.visiting import go_to
from daemon.passwords import (
    LEAST_LETTERS,
    MOST_LETTERS,
    TooManyPasswords,
    check_password,
    hash_password,
    is_password,
)
from storage.account import Token
from storage.accounts import MOST_LETTERS as MOST_NAME
from storage.accounts import issue_token, list_tokens, revoke_token
from storage.errors import Refused
from storage.sessions import begin_session, count_sessions, read_password, set_password

ACCOUNT = "/account"
_LONGEST_DAYS = 36_500

log = structlog.get_logger()


async def show_account(visit: Visit) -> Response:
    """Show the account; what was just done stands above it."""
    said = visit.request.query_params.get("did", "")
    return await _page(visit, said=visit.words.say("account.password.changed") if said == "changed" else "")


async def make_token(visit: Visit) -> Response:
    """Make a token and show its secret, this once: it is in this answer and nowhere else."""
    name, days = visit.form.one("name").strip(), visit.form.one("days").strip()
    is_number = days.isascii() and days.isdigit() and len(days) <= len(str(_LONGEST_DAYS))
    if (
        not name.isprintable()
        or len(name) > MOST_NAME
        or (days and not (is_number and 1 <= int(days) <= _LONGEST_DAYS))
    ):
        fault = visit.words.say("account.token.faulty", most=MOST_NAME)
        return await _page(visit, HTTPStatus.UNPROCESSABLE_ENTITY, fault=fault)
    until = datetime.now(UTC) + timedelta(days=int(days)) if days else None
    token, secret = await issue_token(visit.doors.database, visit.account.id, name, until)
    log.info("token.issued", token=str(token.id), account=visit.account.name, owner=str(visit.account.id))
    response = await _page(visit, HTTPStatus.CREATED, secret=secret)
    response.headers["Cache-Control"] = "no-store"
    return response


async def revoke(visit: Visit) -> Response:
    """Take a token back; somebody else's is none."""
    token_id = asked_record(visit.request)
    mine = {token.id for token in await list_tokens(visit.doors.database, visit.account.id)}
    if token_id not in mine:
        raise no_such_record()
    await revoke_token(visit.doors.database, token_id)
    log.info("token.revoked", token=str(token_id), account=visit.account.name, owner=str(visit.account.id))
    return go_to(ACCOUNT)


async def change_password(visit: Visit) -> Response:
    """Change the password of somebody who knows the present one; this browser stays signed in."""
    words, form, database = visit.words, visit.form, visit.doors.database
    found = await read_password(database, visit.account.name)
    present = None if found is None else found[1]
    try:
        check_password(form.one("new"))
    except Refused:
        fault = words.say("account.password.short", least=LEAST_LETTERS, most=MOST_LETTERS)
        return await _page(visit, HTTPStatus.UNPROCESSABLE_ENTITY, fault=fault)
    if wait := visit.tries.wait_seconds(visit.address, visit.account.name):
        fault = words.say("sign_in.too_many", seconds=round(wait) + 1)
        return await _page(visit, HTTPStatus.TOO_MANY_REQUESTS, fault=fault)
    try:
        if present is not None and not await is_password(present, form.one("now")):
            fault = words.say("account.password.wrong")
            return await _page(visit, HTTPStatus.UNPROCESSABLE_ENTITY, fault=fault)
        password_hash = await hash_password(form.one("new"))
    except TooManyPasswords:
        return await _page(visit, HTTPStatus.SERVICE_UNAVAILABLE, fault=words.say("sign_in.busy"))
    await set_password(database, visit.account.id, password_hash)
    log.info("password.changed", account=visit.account.name, owner=str(visit.account.id))
    response = go_to(f"{ACCOUNT}?did=changed")
    secret = await begin_session(database, visit.account.id, visit.browsers.lasting)
    response.headers.append("Set-Cookie", visit.browsers.cookie(visit.request, secret))
    return response


async def _page(
    visit: Visit, status: int = HTTPStatus.OK, *, said: str = "", fault: str = "", secret: str = ""
) -> Response:
    database, account = visit.doors.database, visit.account
    tokens = await list_tokens(database, account.id)
    found = await read_password(database, account.name)
    return visit.page(
        "account.html",
        status,
        said=said,
        fault=fault,
        secret=secret,
        browsers=await count_sessions(database, account.id),
        tokens=[(token, state_of(token)) for token in reversed(tokens)],
        has_password=found is not None and found[1] is not None,
        least=LEAST_LETTERS,
        most=MOST_LETTERS,
        most_name=MOST_NAME,
        longest_days=_LONGEST_DAYS,
    )


def state_of(token: Token) -> str:
    """Return what a token opens: `valid`, `until` a moment, or nothing any more."""
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is None:
        return "valid"
    return "expired" if token.expires_at <= datetime.now(UTC) else "until"


PAGES = (
    Page(method="GET", path=ACCOUNT, handler=show_account),
    Page(method="POST", path=f"{ACCOUNT}/password", handler=change_password),
    Page(method="POST", path=f"{ACCOUNT}/tokens", handler=make_token),
    Page(method="POST", path=ACCOUNT + "/tokens/{id}/revoke", handler=revoke),
)

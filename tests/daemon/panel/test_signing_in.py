"""Signing in, being signed in, and not any more."""

from collections.abc import Callable
from http import HTTPStatus
from statistics import median
from time import perf_counter

import httpx
import pytest
import trio
import trio.testing
from argon2 import PasswordHasher

from daemon import passwords
from daemon.passwords import TooManyPasswords, check_password, hash_password, is_outdated, is_password
from storage.accounts import disable_account, hash_of, list_tokens
from storage.database import Database
from storage.errors import Refused
from storage.sessions import (
    Lasting,
    accounts_of_sessions,
    begin_session,
    count_sessions,
    forget_sessions,
    make_link,
    read_link,
    set_password,
    use_link,
)
from tests.daemon.panel.conftest import SAME_SITE, Browser, Panel
from tests.making import an_account, put

PASSWORD = "correct horse battery"


@pytest.fixture
async def known(panel: Panel) -> Panel:
    """The panel, with anna's password."""
    await set_password(panel.database, panel.anna.id, await hash_password(PASSWORD))
    return panel


async def tried(browser: Browser, name: str, password: str, **fields: str) -> httpx.Response:
    """Try a name and a password."""
    given = {"name": name, "password": password, **fields}
    return await browser.client.post("/sign-in", data=given, headers=SAME_SITE)


async def test_a_sign_in_makes_a_session_of_its_own(known: Panel) -> None:
    """Whatever cookie a browser had before: it counts for nothing afterwards, and the new one is a secret."""
    browser = await known.browser(None)
    browser.client.cookies.set("rubezh", "planted by somebody")
    answer = await tried(browser, "anna", PASSWORD, next="/records?show=done")
    assert answer.status_code == HTTPStatus.SEE_OTHER
    assert answer.headers["location"] == "/records?show=done"
    cookie = answer.headers["set-cookie"]
    secret = cookie.partition("=")[2].partition(";")[0]
    assert secret != "planted by somebody"
    assert cookie == f"rubezh={secret}; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax"
    kept = await put(known.database, "SELECT secret_sha256 FROM sessions")
    assert [bytes(each[0]) for each in kept] == [hash_of(secret)]
    again = await known.browser(None)
    again.client.cookies.set("rubezh", secret)
    await tried(again, "anna", PASSWORD, **{"rubezh-csrf": "x"})
    assert await count_sessions(known.database, known.anna.id) == 1


@pytest.mark.parametrize(
    ("address", "headers", "is_private"),
    [
        ("https://rubezh.example", {}, True),
        ("http://rubezh.example", {"X-Forwarded-Proto": "https"}, False),
        ("", {"X-Forwarded-Proto": "https"}, True),
        ("", {}, False),
    ],
)
async def test_behind_https_the_cookie_is_for_this_host_alone(
    make_panel: Callable[..., Panel],
    address: str,
    headers: dict[str, str],
    is_private: bool,  # noqa: FBT001 - a case of the table above
) -> None:
    """`__Host-` and Secure where the browser speaks HTTPS: by the settings, or by a proxy on our socket."""
    panel = make_panel(address=address)
    secret = await make_link(panel.database, panel.anna.id, 60)
    browser = await panel.browser(None)
    origin = {"Origin": address or "http://rubezh"}
    answer = await browser.client.post(f"/sign-in/{secret}", headers={**headers, **origin})
    assert answer.status_code == HTTPStatus.SEE_OTHER
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-rubezh=") is is_private
    assert cookie.endswith("; Secure") is is_private


async def test_all_that_is_wrong_is_told_alike(known: Panel) -> None:
    """A wrong password, an unknown name, an account without one, a closed account: one sentence."""
    await an_account(known.database, "without")
    closed, _ = await an_account(known.database, "closed")
    await set_password(known.database, closed.id, await hash_password(PASSWORD))
    await disable_account(known.database, closed.id)
    browser = await known.browser(None)
    answers = [
        await tried(browser, name, password)
        for name, password in (
            ("anna", "wrong"),
            ("nobody", PASSWORD),
            ("without", ""),
            ("closed", PASSWORD),
            ("", ""),
        )
    ]
    assert {answer.status_code for answer in answers} == {HTTPStatus.UNPROCESSABLE_ENTITY}
    assert all("do not belong together" in answer.text for answer in answers)
    assert not any("set-cookie" in answer.headers for answer in answers)


async def test_s_w5_trying_passwords_is_slowed_down(known: Panel) -> None:
    """After ten tries a minute an account answers 429, also to the right password, uncomputed."""
    browser = await known.browser(None)
    for _ in range(10):
        assert (await tried(browser, "anna", "wrong")).status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    began = perf_counter()
    answer = await tried(browser, "anna", PASSWORD)
    assert perf_counter() - began < 0.5
    assert answer.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert "Too many attempts" in answer.text
    link = await make_link(known.database, known.anna.id, 60)
    assert (await browser.client.post(f"/sign-in/{link}", headers=SAME_SITE)).is_redirect


async def test_whoever_signed_in_from_there_is_not_held_up(known: Panel) -> None:
    """Somebody who tries the account from elsewhere does not lock out its owner."""
    browser = await known.browser(None)
    assert (await tried(browser, "anna", PASSWORD)).is_redirect
    tries = known.doors.app.state.tries
    for _ in range(30):
        tries.wait_seconds("192.0.2.1", "anna")
    assert tries.wait_seconds("192.0.2.2", "anna") > 0
    browser.client.cookies.clear()
    assert (await tried(browser, "anna", PASSWORD)).is_redirect


async def test_an_unknown_name_costs_as_much_time() -> None:
    """The time of an answer does not tell who has an account."""
    known = await hash_password(PASSWORD)

    async def cost(password_hash: str | None) -> float:
        began = perf_counter()
        assert not await is_password(password_hash, "wrong")
        return perf_counter() - began

    await cost(None)  # made once
    pairs = [(await cost(known), await cost(None)) for _ in range(5)]
    assert 0.5 < median(right / nobody for right, nobody in pairs) < 2


async def test_passwords_are_argon2id_and_held_against_by_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is kept says how it was made; more than a few who wait are turned away at once."""
    kept = await hash_password("ёлка 🎄")
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert await is_password(kept, "ёлка 🎄")
    assert not is_outdated(kept)
    assert not await is_password("no hash", "no hash")
    monkeypatch.setattr(passwords, "_MOST_WAITING", 1)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(is_password, kept, "x")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(TooManyPasswords):
            await is_password(kept, "x")


@pytest.mark.parametrize("password", ["short", "x" * 1001])
def test_a_password_has_a_length(password: str) -> None:
    """Too short and too long are refused in one sentence."""
    with pytest.raises(Refused, match="letters"):
        check_password(password)


async def test_an_outdated_hash_is_made_anew(known: Panel) -> None:
    """At the next sign-in, as only then the password is known."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    await put(known.database, "UPDATE accounts SET password_hash = %s", cheap)
    assert (await tried(await known.browser(None), "anna", PASSWORD)).is_redirect
    ((kept,),) = await put(known.database, "SELECT password_hash FROM accounts")
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=1$")


async def test_s_w6_a_session_ends_when_it_should(database: Database) -> None:
    """Unused for its days, after all its days, with the account closed, with a new password, by hand."""
    anna, _ = await an_account(database)
    lasting = Lasting(idle_seconds=1000.0, longest_seconds=5000.0)
    secret = await begin_session(database, anna.id, lasting)
    assert secret is not None
    mine = hash_of(secret)

    async def is_there() -> bool:
        return mine in await accounts_of_sessions(database, lasting, [mine])

    assert await is_there()
    await put(database, "UPDATE sessions SET until = clock_timestamp() + interval '1 second'")
    assert await is_there()
    ((left,),) = await put(database, "SELECT extract(epoch FROM until - clock_timestamp()) FROM sessions")
    assert left > 990  # its use has moved the end on
    await disable_account(database, anna.id)
    assert not await is_there()
    await disable_account(database, anna.id, disabled=False)
    await put(database, "UPDATE sessions SET began_at = clock_timestamp() - interval '5001 seconds'")
    assert not await is_there()
    await put(database, "UPDATE sessions SET began_at = clock_timestamp(), until = clock_timestamp()")
    assert not await is_there()
    await forget_sessions(database)
    assert await put(database, "SELECT count(*) FROM sessions") == [(0,)]
    await disable_account(database, anna.id)
    assert await begin_session(database, anna.id, lasting) is None


async def test_a_link_is_used_once_and_in_time(database: Database) -> None:
    """Of those who come at once one gets it; one that is over opens nothing; a new password ends all."""
    anna, _ = await an_account(database)
    secret = await make_link(database, anna.id, 60)
    assert await read_link(database, secret) == anna
    got: list[object] = []

    async def use() -> None:
        got.append(await use_link(database, secret))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(use)
    assert sorted(got, key=bool) == [None, None, None, None, anna]
    assert await use_link(database, await make_link(database, anna.id, 0)) is None
    last = await make_link(database, anna.id, 60)
    await set_password(database, anna.id, None)
    assert await read_link(database, last) is None


async def test_signing_out_here_and_everywhere(panel: Panel) -> None:
    """Here it ends this browser, everywhere all; the browser forgets its cookie and what it kept."""
    here, there = await panel.browser(panel.anna), await panel.browser(panel.anna)
    answer = await here.post("/sign-out")
    assert answer.headers["location"] == "/sign-in?said=out"
    assert answer.headers["set-cookie"].startswith("rubezh=; Path=/; Max-Age=0")
    assert answer.headers["clear-site-data"] == '"cache"'
    assert (await there.get("/records")).status_code == HTTPStatus.OK
    other = await panel.browser(panel.anna)
    await other.post("/sign-out-everywhere")
    assert (await there.get("/records")).is_redirect
    assert await count_sessions(panel.database, panel.anna.id) == 0


async def test_a_form_of_an_ended_session_leads_to_the_sign_in(panel: Panel) -> None:
    """It says that the session has ended, and does nothing."""
    browser = await panel.browser(panel.anna)
    await put(panel.database, "DELETE FROM sessions")
    answer = await browser.post("/records", do="delete", id="x")
    assert answer.headers["location"] == "/sign-in?said=again"
    assert "Your session has ended" in (await browser.get("/sign-in?said=again")).text


async def test_a_password_is_changed_by_whoever_knows_it(known: Panel) -> None:
    """This browser stays signed in, every other one does not; a wrong one and a short one are told."""
    here, there = await known.browser(known.anna), await known.browser(known.anna)
    path = "/account/password"
    assert "is another one" in (await here.post(path, now="wrong", new="a new password")).text
    assert "8 letters or more" in (await here.post(path, now=PASSWORD, new="short")).text
    answer = await here.post(path, now=PASSWORD, new="a new password")
    assert answer.headers["location"] == "/account?did=changed"
    assert (await there.get("/account")).is_redirect
    assert "password is changed" in (await here.get("/account?did=changed")).text
    stranger = await known.browser(None)
    assert (await tried(stranger, "anna", PASSWORD)).status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert (await tried(stranger, "anna", "a new password")).is_redirect


async def test_a_token_is_shown_once_and_taken_back(panel: Panel) -> None:
    """The secret is in the answer that made it and nowhere else; it opens the doors until it is revoked."""
    browser = await panel.browser(panel.anna)
    made = await browser.post("/account/tokens", name="a phone", days="30")
    assert made.status_code == HTTPStatus.CREATED
    assert made.headers["cache-control"] == "no-store"
    secret = made.text.partition("<code data-copy>")[2].partition("</code>")[0]
    assert secret.startswith("rbz_")
    assert secret not in (await browser.get("/account")).text
    async with panel.doors.client(secret) as program:
        assert (await program.get("/v1/records")).status_code == HTTPStatus.OK
        (token,) = [
            each for each in await list_tokens(panel.database, panel.anna.id) if each.name == "a phone"
        ]
        assert (await browser.post(f"/account/tokens/{token.id}/revoke")).is_redirect
        assert (await program.get("/v1/records")).status_code == HTTPStatus.UNAUTHORIZED
    page = (await browser.get("/account")).text
    assert "revoked" in page
    for fields in ({"days": "0"}, {"days": "x"}, {"days": "1e3"}, {"days": "36501"}, {"name": "x" * 201}):
        answer = await browser.post("/account/tokens", **{"name": "", **fields})
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, fields


async def test_a_page_learns_the_proof_of_a_later_session(panel: Panel) -> None:
    """Who signed in again in another tab goes on in this one; a stranger is told nothing."""
    browser = await panel.browser(panel.anna)
    told = (await browser.get("/proof")).json()
    assert told["account"] == str(panel.anna.id)
    assert (await (await panel.browser(None)).get("/proof")).is_redirect

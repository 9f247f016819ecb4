"""What others reach through the panel: nothing of one's own, and no page but ours makes a browser act."""

import re
from http import HTTPStatus
from itertools import chain
from pathlib import Path

import pytest

import daemon.panel
from daemon.intake.browsers import PROOF, proof_of
from daemon.panel.app import PAGES
from daemon.panel.page import For, Page
from storage.accounts import disable_account
from storage.ids import new_id
from storage.sessions import count_sessions
from tests.daemon.panel.conftest import SAME_SITE, Panel, listening
from tests.making import BYTES, a_record, put
from tests.waiting import until

FORMS = [page for page in PAGES if page.method == "POST"]
OF_A_RECORD = [page for page in PAGES if "{id}" in page.path]
# How a request comes that no page of ours had sent, and is not from a person's own hand.
FOREIGN: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "https://elsewhere.example"},
    {"Origin": "null"},
    {},
]


def filled(page: Page, record_id: object = None) -> str:
    """Return a page's path with an id in its place."""
    given = {"id": str(record_id or new_id()), "verb": "delete"}
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda match: given.get(match[1], "1"), page.path)


async def test_a_stranger_is_led_to_the_sign_in(panel: Panel) -> None:
    """Whatever is asked for; what is asked for is not told apart."""
    browser = await panel.browser(None)
    for page in PAGES:
        answer = await browser.client.request(page.method, filled(page), headers=SAME_SITE)
        if page.who is For.ANYBODY:
            assert answer.status_code != HTTPStatus.INTERNAL_SERVER_ERROR, page.path
        else:
            assert answer.status_code == HTTPStatus.SEE_OTHER, page.path
            assert answer.headers["location"].startswith("/sign-in")


async def test_every_answer_is_guarded(panel: Panel) -> None:
    """No code but ours runs on it, nobody frames it, and it is taken for what it says it is."""
    browser = await panel.browser(await panel.account("olga", is_owner=True))
    for page in PAGES:
        async with browser.client.stream(page.method, filled(page), headers=SAME_SITE) as answer:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "same-origin"


async def test_s_w1_a_form_that_is_not_ours_does_nothing(panel: Panel) -> None:
    """From elsewhere, from nowhere, or without what only a page of ours knows: 403, and nothing changes."""
    record_id = await a_record(panel.database, panel.store, panel.anna)
    browser = await panel.browser(panel.anna)
    proof = {PROOF: proof_of(browser.secret)}
    for page in FORMS:
        path = filled(page, record_id)
        for headers in FOREIGN:
            answer = await browser.client.post(path, data=proof, headers=headers)
            assert answer.status_code == HTTPStatus.FORBIDDEN, (path, headers)
        for wrong in () if page.reads_itself else ({}, {PROOF: ""}, {PROOF: proof_of("another")}):
            answer = await browser.client.post(path, data=wrong, headers=SAME_SITE)
            assert answer.status_code == HTTPStatus.FORBIDDEN, (path, wrong)
    assert await put(panel.database, "SELECT count(*) FROM records WHERE deleted_at IS NULL") == [(1,)]
    assert await count_sessions(panel.database, panel.anna.id) == 1


async def test_s_w2_a_cookie_opens_the_api_to_our_own_pages_alone(panel: Panel) -> None:
    """What reads needs our origin, what changes the proof as well; a token still needs neither."""
    browser = await panel.browser(panel.anna)
    proof = {PROOF: proof_of(browser.secret)}
    listed = "/v1/records"
    assert (await browser.client.get(listed, headers=SAME_SITE)).status_code == HTTPStatus.OK
    assert (await browser.client.get(listed)).status_code == HTTPStatus.OK
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.example"}):
        assert (await browser.client.get(listed, headers=headers)).status_code == HTTPStatus.FORBIDDEN
    for headers in (*FOREIGN, *({**each, **proof} for each in FOREIGN), SAME_SITE):
        answer = await browser.client.post(listed, content=BYTES, headers=headers)
        assert answer.status_code == HTTPStatus.FORBIDDEN, headers
    good = {**SAME_SITE, **proof}
    assert (await browser.client.post(listed, content=BYTES, headers=good)).status_code == HTTPStatus.CREATED
    by_origin = {"Origin": "http://rubezh", **proof}
    answer = await browser.client.post(listed, content=BYTES, headers=by_origin)
    assert answer.status_code == HTTPStatus.CREATED
    await disable_account(panel.database, panel.anna.id)
    assert (await browser.client.get(listed, headers=SAME_SITE)).status_code == HTTPStatus.UNAUTHORIZED


async def test_s_w3_another_s_ids_are_nobody_s(panel: Panel) -> None:
    """A record, a token: of somebody else, deleted, unknown and no id at all, all are the same 404."""
    record_id = await a_record(panel.database, panel.store, panel.anna)
    ((token_id,),) = await put(panel.database, "SELECT id FROM tokens")
    boris = await panel.browser(await panel.account("boris"))
    for page in OF_A_RECORD:
        answers: set[tuple[int, str]] = set()
        for each in (record_id, token_id, new_id(), "x"):
            path = filled(page, each)
            answer = await (boris.post(path) if page.method == "POST" else boris.get(path))
            answers.add((answer.status_code, answer.text.replace(path, "")))
        assert {status for status, _ in answers} == {HTTPStatus.NOT_FOUND}, page.path
        assert len(answers) == 1, page.path
    assert await put(panel.database, "SELECT count(*) FROM records WHERE deleted_at IS NULL") == [(1,)]
    assert await put(panel.database, "SELECT count(*) FROM tokens WHERE revoked_at IS NULL") == [(1,)]


async def test_what_is_done_to_many_is_done_to_one_s_own(panel: Panel) -> None:
    """Among selected ids somebody else's are passed over, and live rows are not shown."""
    of_anna = await a_record(panel.database, panel.store, panel.anna)
    account = await panel.account("boris")
    of_boris = await a_record(panel.database, panel.store, account)
    boris = await panel.browser(account)
    answer = await boris.post("/records", do="delete", id=[str(of_anna), str(of_boris), "x"])
    assert answer.headers["location"] == f"/records?deleted={of_boris}"
    left = await put(panel.database, "SELECT id FROM records WHERE deleted_at IS NULL")
    assert left == [(of_anna,)]
    async with listening(boris, f"/records/live?ids={of_anna},{of_boris}&newest=x") as heard:
        await until(lambda: "event: newer" in heard.said)
    assert str(of_anna) not in heard.said


async def test_s_w4_the_service_s_page_is_for_its_owner_and_holds_no_words_of_others(panel: Panel) -> None:
    """To everybody else there is no such page; it says whose records are what, and nothing of their words."""
    record_id = await a_record(
        panel.database, panel.store, panel.anna, title="A secret title", filename="secret.wav"
    )
    await put(
        panel.database,
        "UPDATE records SET stop_code = 'silent', stop_reason = 'nobody spoke', stopped_by = 'x', "
        "stopped_at = clock_timestamp(), recognised_text = 'secret words' WHERE id = %s",
        record_id,
    )
    anna = await panel.browser(panel.anna)
    assert (await anna.get("/service")).status_code == HTTPStatus.NOT_FOUND
    owner = await panel.browser(await panel.account("olga", is_owner=True))
    for path in ("/service", "/service?code=silent", "/service?code=nonsense"):
        page = await owner.get(path)
        assert page.status_code == HTTPStatus.OK
        assert str(record_id) in page.text
        assert "nobody spoke" in page.text
        assert "secret" not in page.text
    assert str(record_id) not in (await owner.get("/service?code=overdue")).text


@pytest.mark.parametrize(
    "place", ["//elsewhere.example", "/\\elsewhere.example", "https://elsewhere.example", "x"]
)
async def test_nobody_is_led_elsewhere(panel: Panel, place: str) -> None:
    """Where a form or an address says to go on to is a page of ours, or the list."""
    browser = await panel.browser(panel.anna)
    answers = [
        await browser.client.get("/sign-in", params={"next": place}),
        await browser.post("/look", theme="dark", back=place),
        await browser.post("/records", do="lift", back=place),
    ]
    assert all(answer.headers["location"].startswith("/records") for answer in answers)


def test_every_form_in_a_template_is_one_of_these() -> None:
    """The tests above look at each form there is: what a template sends goes to one of the pages."""
    folder = Path(daemon.panel.__file__).parent / "templates"
    sent = set(
        chain.from_iterable(
            re.findall(r'<form method="post" action="([^"]+)"', file.read_text()) for file in folder.iterdir()
        )
    )
    known = {re.sub(r"\{.*?\}", "*", page.path) for page in FORMS}
    assert {re.sub(r"\{\{.*?\}\}", "*", each) for each in sent} - {"*"} <= known

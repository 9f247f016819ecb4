"""Signing in and out, in a browser."""

from daemon.passwords import hash_password
from storage.database import Database
from storage.sessions import make_link, set_password
from tests.panel.house import PASSWORD, House, Person


def with_password(house: House, person: Person) -> None:
    """Give somebody a password."""

    async def give(database: Database) -> None:
        await set_password(database, person.id, await hash_password(PASSWORD))

    house.do(give)


def test_a_password_opens_the_records_and_signing_out_closes_them(house: House, anna: Person) -> None:
    """A wrong one says so in one sentence; the way one wanted to go is gone on with."""
    with_password(house, anna)
    page = house.visitor()
    page.goto("/account")
    page.fill("#name", anna.name)
    page.fill("#password", "not it")
    page.press("#password", "Enter")
    assert "do not belong together" in page.inner_text("[role=alert]")
    assert page.input_value("#name") == anna.name
    page.fill("#password", PASSWORD)
    page.press("#password", "Enter")
    page.wait_for_url("**/account")
    page.click("text=Sign out >> nth=0")
    page.wait_for_url("**/sign-in?said=out")
    page.goto("/records")
    page.wait_for_url("**/sign-in")


def test_a_link_signs_in_once(house: House, anna: Person) -> None:
    """Looking at it uses nothing up; the button does."""

    async def made(database: Database) -> str:
        return await make_link(database, anna.id, 60.0)

    path = f"/sign-in/{house.do(made)}"
    page = house.visitor()
    for _ in range(2):
        page.goto(path)
    page.click("main button")
    page.wait_for_url("**/records")
    other = house.visitor()
    other.goto(path)
    assert "was used" in other.inner_text("[role=alert]")

"""Every page, light and dark, on a desk and on a phone, in both languages: it can be read, and nothing runs.

The pictures are put into build/screenshots, for people to look at.
"""

from itertools import product
from typing import Literal
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.panel.conftest import SCREENSHOTS
from tests.panel.house import SIZES, House
from tests.panel.pages import FOR_STRANGERS, HOSTILE, PAGES, TURNED, Furnished, furnish

THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
JUDGED = (("light", "desktop"), ("dark", "phone"))  # both themes and both sizes once: the rules ask no more
MOST_BYTES = 100_000


@pytest.fixture(scope="package")
def furnished(whole_house: House) -> Furnished:
    """The house with everything in it."""
    return furnish(whole_house)


@pytest.mark.parametrize(("theme", "size"), list(product(THEMES, SIZES)))
def test_s_w10_every_page_can_be_read_by_everybody(
    house: House, furnished: Furnished, theme: Literal["light", "dark"], size: str
) -> None:
    """No violation of the rules that axe knows, nothing wider than the window; Russian in the dark."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    language = "en" if theme == "light" else "ru"
    faults = []
    signed_in = house.visitor(furnished.anna, size=size, color_scheme=theme, locale=language)
    stranger = house.visitor(size=size, color_scheme=theme, locale=language)
    for name, address in PAGES.items():
        page = stranger if name in FOR_STRANGERS else signed_in
        page.goto(address(furnished))
        if size == "phone":
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            faults += [f"{name} is {wide} pixels too wide"] if wide > 0 else []
        page.screenshot(path=SCREENSHOTS / f"{name}-{theme}-{size}.png", full_page=True)
        if (theme, size) not in JUDGED:
            continue
        found = Axe().run(page).response["violations"]
        faults += [f"{name}: {each['id']}: {node['html']}" for each in found for node in each["nodes"]]
        assert page.locator("html").get_attribute("lang") == language
    assert faults == []


def test_every_page_is_small_and_readable_without_scripts(house: House, furnished: Furnished) -> None:
    """Less than 100 KB with all it brings; its heading and its words are there with scripts off."""
    with_scripts = house.visitor(furnished.anna)
    without = house.visitor(furnished.anna, java_script_enabled=False)
    sizes: list[int] = []
    with_scripts.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    for name, address in PAGES.items():
        if name in FOR_STRANGERS:
            continue
        sizes.clear()
        with_scripts.goto(address(furnished), wait_until="load")
        assert sum(sizes) < MOST_BYTES, name
        without.goto(address(furnished))
        assert without.locator("h1").inner_text(), name
        assert len(without.locator("main").inner_text()) > 40, name


def test_hostile_words_are_words_on_every_page(house: House, furnished: Furnished) -> None:
    """They stand there as they were sent; nothing of them runs, and nothing is made of them."""
    page = house.visitor(furnished.anna)
    for address in PAGES.values():
        page.goto(address(furnished))
        assert page.locator("main script, main img[src=x]").count() == 0
    page.goto("/records")
    assert page.locator(".name", has_text=HOSTILE[:25]).first.inner_text().strip() == TURNED
    said = quote(HOSTILE)
    page.goto(f"/sign-in?next={said}&said={said}")
    page.goto(f"/records?q={said}&show={said}&deleted={said}&did=lifted&number={said}")
    assert page.input_value("[type=search]") == HOSTILE

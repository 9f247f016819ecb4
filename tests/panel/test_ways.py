"""The panel by the keyboard alone, on a phone, in Russian, and with scripts off: nothing is out of reach."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.panel.house import House, Person, a_tone


def focused(page: Page) -> str:
    """Return what the keyboard is at: its name, or its text."""
    found: str = page.evaluate(
        "(document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || '').trim()"
    )
    return found


def tab_to(page: Page, name: str) -> None:
    """Go on by the tab key until the keyboard is there; whoever is there sees it."""
    for _ in range(60):
        if focused(page) == name:
            break
        page.keyboard.press("Tab")
    assert focused(page) == name
    assert page.evaluate("document.activeElement.matches(':focus-visible')")


def test_all_is_done_by_the_keyboard(house: House, anna: Person) -> None:
    """Past the header, searching, opening a hit, selecting, deleting, having back: without a pointer."""
    record_id = house.submit(anna, a_tone(3), filename="by hand.wav")
    house.finished(anna, record_id)
    page = house.visitor(anna)
    page.goto("/records")
    page.wait_for_selector(".record")
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("milestones")
    page.keyboard.press("Enter")
    expect(page.locator(".hit")).to_have_count(1)
    tab_to(page, page.locator(".hit").inner_text().strip())
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"/records/{record_id}\?at="))
    page.goto("/records")
    page.wait_for_selector(".record")
    tab_to(page, "Select by hand.wav")
    page.keyboard.press("Space")
    tab_to(page, "Delete")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_contain_text("1 record deleted.")
    tab_to(page, "Undo")
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(1)


def test_a_phone_in_russian_hands_in_and_reads(house: House, anna: Person, tmp_path: Path) -> None:
    """In a narrow window, by touch, in Russian; the language and the theme that are chosen stay."""
    path = tmp_path / "лекция.wav"
    path.write_bytes(a_tone(4))
    page = house.visitor(anna, size="phone", locale="ru-RU", has_touch=True, is_mobile=True)
    page.goto("/records")
    expect(page.locator("h1")).to_have_text("Записи")
    page.set_input_files("#files", path)
    row = page.locator(".row", has_text="лекция.wav")
    expect(row.locator(".meta")).to_contain_text("Распознаётся")
    expect(row).to_have_class(re.compile("done"))
    row.locator(".name").tap()
    expect(page.locator("h1")).to_contain_text("лекция.wav")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("footer >> text=English").tap()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.locator("footer >> text=Dark").tap()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/records")
    expect(page.locator("h1")).to_have_text("Records")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_without_scripts_a_recording_is_handed_in_and_its_stop_lifted(
    house: House, anna: Person, tmp_path: Path
) -> None:
    """By plain forms alone."""
    path = tmp_path / "stubborn.wav"
    path.write_bytes(a_tone(1))
    page = house.visitor(anna, java_script_enabled=False)
    page.goto("/records")
    page.set_input_files("input[type=file]", path)
    page.click("text=Send")
    page.wait_for_url(re.compile(r"/records/[0-9a-f-]{36}$"))
    record_id = page.url.rpartition("/")[2]
    assert house.finished(anna, record_id)["stopped"]
    page.goto("/records")
    page.check(".row input")
    page.click("button:has-text('Lift')")
    assert "1 record is at work again." in page.inner_text(".notice")
    assert house.finished(anna, record_id)["milestone"] == "done"

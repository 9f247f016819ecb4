"""The list of records: handing in, watching, finding, stopping, lifting, deleting, in a browser."""

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.acceptance.rig import eventually
from tests.panel.house import House, Person, a_tone


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Six seconds of a tone."""
    path = tmp_path / "meeting.wav"
    path.write_bytes(a_tone(6))
    return path


def test_a_file_is_handed_in_watched_and_found(house: House, anna: Person, recording: Path) -> None:
    """It is accepted, its progress is seen to grow without a reload, and words in it lead to their second."""
    page = house.visitor(anna)
    page.goto("/records")
    expect(page.locator(".empty")).to_be_visible()
    page.set_input_files("#files", recording)
    row = page.locator(".row", has_text="meeting.wav")
    expect(row).to_be_visible()
    expect(row.locator(".meta")).to_contain_text(re.compile(r"0:0[24] / 0:06"))
    expect(row).to_have_class(re.compile("done"))
    assert page.locator(".row input").is_enabled()
    page.fill("[type=search]", "рубежи")
    page.press("[type=search]", "Enter")
    hit = page.locator(".hit").first
    expect(hit.locator("mark")).to_have_text("рубежи")
    expect(hit.locator("time")).to_have_text("0:01")
    hit.click()
    page.wait_for_url(re.compile(r"/records/[0-9a-f-]+\?at=1\.00"))


def test_a_file_is_dropped_anywhere(house: House, anna: Person) -> None:
    """The whole window takes it, and says so while it is over it."""
    page = house.visitor(anna)
    page.goto("/records")
    page.wait_for_selector(".record")
    transfer = page.evaluate_handle(
        """(bytes) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], "dropped.wav", { type: "audio/wav" }));
            return data;
        }""",
        list(a_tone(1)),
    )
    page.dispatch_event("footer", "dragover", {"dataTransfer": transfer})
    expect(page.locator(".drop")).to_be_visible()
    page.dispatch_event("footer", "drop", {"dataTransfer": transfer})
    expect(page.locator(".drop")).to_be_hidden()
    expect(page.locator(".row", has_text="dropped.wav")).to_be_visible()


def test_a_stopped_record_says_why_and_goes_on_when_lifted(house: House, anna: Person) -> None:
    """The reason stands there in words, and the lift finishes it."""
    house.finished(anna, house.submit(anna, a_tone(2), filename="stubborn.wav"))
    page = house.visitor(anna)
    page.goto("/records?show=stopped")
    row = page.locator(".row", has_text="stubborn.wav")
    expect(row.locator(".reason")).to_contain_text("The recogniser refused this recording.")
    expect(page.locator(".bulk")).to_be_hidden()
    row.locator("input").check()
    page.click(".bulk >> text=Lift")
    expect(page.locator("[role=status]", has_text="1 record is at work again.")).to_be_visible()
    page.goto("/records")
    expect(page.locator(".row", has_text="stubborn.wav")).to_have_class(re.compile("done"))


def test_what_was_deleted_is_had_back(house: House, anna: Person) -> None:
    """Several at once; the notice has the way back."""
    for name in ("one.wav", "two.wav", "three.wav"):
        house.finished(anna, house.submit(anna, a_tone(1), filename=name))
    page = house.visitor(anna)
    page.goto("/records")
    for name in ("one.wav", "two.wav"):
        page.locator(".row", has_text=name).locator("input").check()
    page.click(".bulk >> text=Delete")
    expect(page.locator(".notice", has_text="2 records deleted.")).to_be_visible()
    expect(page.locator(".row")).to_have_count(1)
    page.click("text=Undo")
    expect(page.locator(".notice", has_text="2 records are back.")).to_be_visible()
    expect(page.locator(".row")).to_have_count(3)


def test_a_record_from_elsewhere_appears_by_itself(house: House, anna: Person) -> None:
    """What a program hands in is seen on an open page, and its end as well."""
    page = house.visitor(anna)
    page.goto("/records")
    page.wait_for_selector(".record")
    house.submit(anna, a_tone(3), filename="from a program.wav")
    row = page.locator(".row", has_text="from a program.wav")
    expect(row).to_be_visible()
    expect(row).to_have_class(re.compile("done"))


def test_the_microphone_is_recorded_and_sent(house: House, anna: Person) -> None:
    """Chromium's own microphone beeps; what it beeped becomes a record."""
    page = house.visitor(anna)
    page.goto("/records")
    page.click(".record")
    expect(page.locator(".ways [role=status]")).to_contain_text(re.compile(r"Recording, 0:0[1-9]"))
    page.click("text=Stop and send")
    row = page.locator(".row", has_text="Recording ")
    expect(row).to_be_visible()
    expect(row).to_have_class(re.compile("done"))
    record_id = row.get_attribute("data-id")
    assert record_id is not None
    assert house.poll(anna, record_id)["audio"]["decoded_seconds"] > 0.5


def test_s_w8_a_recording_outlives_its_page(house: House, anna: Person) -> None:
    """What was recorded when the page went is offered by the next one, and sent whole."""
    page = house.visitor(anna)
    page.goto("/records")
    page.click(".record")
    expect(page.locator(".ways [role=status]")).to_contain_text(re.compile(r"Recording, 0:0[2-9]"))
    page.reload()
    expect(page.locator(".notice", has_text="was not sent")).to_be_visible()
    page.click("text=Send it")
    expect(page.locator(".row", has_text="Recording ")).to_have_class(re.compile("done"))
    page.reload()
    page.wait_for_selector(".record")
    expect(page.locator(".notice")).to_have_count(0)


def test_s_w9_an_upload_outlives_its_connection_and_its_page(
    house: House, anna: Person, tmp_path: Path
) -> None:
    """It goes on by itself where it was: after the line broke, and, of what the browser kept, a reload."""
    path = tmp_path / "long.wav"
    path.write_bytes(a_tone(400))  # 12.8 MB: two parts
    page = house.visitor(anna)
    page.goto("/records")
    parts: list[str] = []

    def cut(route: Route) -> None:
        if route.request.method == "PATCH":
            parts.append(route.request.headers["upload-offset"])
            if len(parts) in (1, 3):
                route.abort()
                return
        route.continue_()

    page.route("**/v1/uploads/*", cut)
    page.set_input_files("#files", path)
    expect(page.locator(".transfers")).to_contain_text("The connection is lost")

    def third_part_is_sent() -> bool:
        page.wait_for_timeout(50)  # the browser's own turn, in which it asks us for the next
        return len(parts) > 2

    eventually(third_part_is_sent, "a third part")
    page.context.set_offline(True)
    page.unroute("**/v1/uploads/*")
    page.context.set_offline(False)
    page.reload()
    expect(page.locator(".row", has_text="long.wav")).to_be_visible()
    assert parts[:3] == ["0", "0", str(8 * 2**20)]
    # Its 400 seconds would keep the reader from the next test's recordings.
    record_id = page.locator(".row", has_text="long.wav").get_attribute("data-id")
    headers = {"Authorization": f"Bearer {anna.token}"}
    httpx.delete(f"{house.address}/v1/records/{record_id}", headers=headers).raise_for_status()

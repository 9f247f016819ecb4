"""The page of a record on the server: its parts, its words, its forms, its stream."""

import re
from http import HTTPStatus
from uuid import UUID, uuid4

import pytest
import structlog

from daemon.panel import one
from daemon.panel.lines import LINES
from storage.corrections import Place, correct
from storage.owner import Edit, edit
from tests.daemon.panel.conftest import Panel, listening
from tests.making import a_record, change, put
from tests.waiting import until


async def a_text(panel: Panel, lines: int, *, milestone: str = "done") -> UUID:
    """Return a record with so many lines, one a second."""
    record_id = await a_record(panel.database, panel.store, panel.anna)
    await put(
        panel.database,
        "INSERT INTO segments (record_id, slice, number, start_seconds, end_seconds, text, words)"
        " SELECT %s, n / 10, mod(n, 10), n, n + 0.9, ' Line ' || n, jsonb_build_array("
        "jsonb_build_object('start', n, 'end', n + 0.4, 'text', ' Line', 'probability', 1),"
        "jsonb_build_object('start', n + 0.4, 'end', n + 0.9, 'text', ' ' || n, 'probability', 1))"
        " FROM generate_series(0, %s) AS n",
        record_id,
        lines - 1,
    )
    lane = "NULL" if milestone == "done" else "'whisper'"
    await change(
        panel.database, record_id, f"milestone = '{milestone}', lane = {lane}, recognised_seconds = {lines}"
    )
    return record_id


def said(page: str) -> list[str]:
    """Return the lines of a page."""
    return re.findall(r'<span class="said">([^<]*)</span>', page)


@pytest.mark.parametrize(
    ("query", "first", "number"),
    [
        ("", 0, 0),
        ("?part=1", 100, 1),
        ("?part=9", 200, 2),
        ("?part=-1", 0, 0),
        ("?part=x", 0, 0),
        ("?part=nan", 0, 0),
        ("?at=0", 0, 0),
        ("?at=99.5", 0, 0),
        ("?at=100", 100, 1),
        ("?at=1e300", 200, 2),
        ("?at=nonsense", 0, 0),
    ],
)
async def test_a_part_is_asked_for_by_its_number_or_by_a_second(
    panel: Panel, query: str, first: int, number: int
) -> None:
    """Whatever the address says, there is a part; the page leads to those around it."""
    record_id = await a_text(panel, 250)
    browser = await panel.browser(panel.anna)
    page = (await browser.get(f"/records/{record_id}{query}")).text
    assert said(page)[0] == f"Line {first}"
    assert len(said(page)) == (LINES if number < 2 else 50)
    assert f'data-part="{number}"' in page
    assert ("part=0#text" in page, "part=2#text" in page) == (number == 1, number == 1)
    fragment = (await browser.get(f"/records/{record_id}/text{query}")).text
    assert said(fragment) == said(page)
    assert fragment.startswith('<section class="part"')


async def test_words_are_told_with_their_seconds_as_they_are_by_now(panel: Panel) -> None:
    """Of a corrected line those of the correction."""
    record_id = await a_text(panel, 120)
    await correct(panel.database, record_id, panel.anna.id, "anna", Place(slice=0, number=1), 0, "Line one")
    browser = await panel.browser(panel.anna)
    words = (await browser.get(f"/records/{record_id}/words")).json()
    assert (words["0.0"], words["0.1"]) == ([[0.0, "Line"], [0.4, "0"]], [[1.0, "Line"], [1.4, "one"]])
    assert len(words) == LINES
    assert "10.0" in (await browser.get(f"/records/{record_id}/words?part=1")).json()


async def test_forms_that_say_nothing_of_their_edition_change_nothing(panel: Panel) -> None:
    """Nor does one whose text is too long, nor one about a line that there is not."""
    record_id = await a_text(panel, 2)
    browser = await panel.browser(panel.anna)
    for edition in ("", "x", "-1", "1" * 30):
        answer = await browser.post(f"/records/{record_id}/edit", title="New", edition=edition)
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
        answer = await browser.post(f"/records/{record_id}/segments/0.0", text="New", edition=edition)
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    too_long = await browser.post(f"/records/{record_id}/segments/0.0", text="x" * 20_001, edition="0")
    assert too_long.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    for key in ("5.0", "x", "0.00"):
        answer = await browser.post(f"/records/{record_id}/segments/{key}", text="New", edition="0")
        assert answer.status_code == HTTPStatus.NOT_FOUND
    page = (await browser.get(f"/records/{record_id}")).text
    assert said(page) == ["Line 0", "Line 1"]
    assert "New" not in page


async def test_s_w22_of_two_forms_the_second_is_shown_both_versions(panel: Panel) -> None:
    """Of the record and of a line; what is sent once more by who lost the answer is no conflict."""
    record_id = await a_text(panel, 1)
    browser = await panel.browser(panel.anna)
    await edit(panel.database, record_id, panel.anna.id, "anna", Edit(title="Theirs", edition=1))
    fields = {"title": "Mine", "description": "", "topics": "a\r\n\r\n b ", "edition": "1"}
    conflict = await browser.post(f"/records/{record_id}/edit", **fields)
    assert conflict.status_code == HTTPStatus.CONFLICT
    assert "<dd>Theirs</dd>" in conflict.text
    assert 'value="Mine"' in conflict.text
    assert '<input type="hidden" name="edition" value="2">' in conflict.text
    for _ in range(2):
        answer = await browser.post(f"/records/{record_id}/edit", **{**fields, "edition": "2"})
        assert answer.headers["location"] == f"/records/{record_id}"
    rows = await put(panel.database, "SELECT title, topics, edition FROM records WHERE id = %s", record_id)
    assert rows == [("Mine", ["a", "b"], 3)]

    await correct(panel.database, record_id, panel.anna.id, "anna", Place(slice=0, number=0), 0, "Theirs")
    conflict = await browser.post(f"/records/{record_id}/segments/0.0", text="Mine", edition="0")
    assert conflict.status_code == HTTPStatus.CONFLICT
    assert '<p class="said">Theirs</p>' in conflict.text
    assert ">\nMine</textarea>" in conflict.text
    answer = await browser.post(f"/records/{record_id}/segments/0.0", text="Mine", edition="1")
    assert answer.headers["location"] == f"/records/{record_id}?at=0.00#s-0-0"
    page = (await browser.get(f"/records/{record_id}/segments/0.0")).text
    assert page.count("<li>") == 2
    await browser.post(f"/records/{record_id}/segments/0.0", recognised="yes", edition="2")
    assert said((await browser.get(f"/records/{record_id}")).text) == ["Line 0"]
    assert "Back to what was recognised" in (await browser.get(f"/records/{record_id}/segments/0.0")).text


async def test_a_stream_says_what_the_record_is_at_and_that_there_is_text(
    panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, when it changes, when its text is corrected; and that the session is over."""
    monkeypatch.setattr(one, "LOOK_SECONDS", 0.2)
    record_id = await a_text(panel, 3, milestone="transcribe")
    browser = await panel.browser(panel.anna)
    async with listening(browser, f"/records/{record_id}/live") as heard:
        await until(lambda: heard.said.count("event: text") == 1)
        assert "event: state" in heard.said
        await correct(panel.database, record_id, panel.anna.id, "anna", Place(slice=0, number=0), 0, "x")
        await until(lambda: '"corrections": 1' in heard.said)
        await browser.post(f"/records/{record_id}/stop")
        await until(lambda: "stopped on request" in heard.said)
        await until(lambda: "still here" in heard.said)
        await put(panel.database, "DELETE FROM sessions")
        await until(lambda: heard.over)
    assert heard.said.endswith("event: over\ndata: {}\n\n")


async def test_a_record_that_is_deleted_meanwhile_ends_its_stream(panel: Panel) -> None:
    """Without a word in the log: that is nobody's fault."""
    record_id = await a_text(panel, 1)
    browser = await panel.browser(panel.anna)
    with structlog.testing.capture_logs() as logged:
        async with listening(browser, f"/records/{record_id}/live") as heard:
            await until(lambda: "event: state" in heard.said)
            await browser.post(f"/records/{record_id}/delete")
            await until(lambda: heard.over)
    assert [entry["event"] for entry in logged] == ["record.deleted"]


async def test_what_happened_is_told_in_words_and_without_what_is_not_the_owners(panel: Panel) -> None:
    """Causes of failures and names of workers stay inside; claims and deferrals are not told at all."""
    record_id = await a_text(panel, 1)
    for kind in ("claimed", "deferred", "failed", "timed_out", "given_back", "handed_over"):
        await put(
            panel.database,
            "INSERT INTO events (record_id, kind, milestone, by, detail)"
            """ VALUES (%s, %s, 'created', 'worker:1', '{"cause": "secret"}')""",
            record_id,
            kind,
        )
    browser = await panel.browser(panel.anna)
    page = (await browser.get(f"/records/{record_id}")).text
    history = page.partition('<details class="history">')[2]
    assert history.count("<li>") == 5
    assert "A try failed; another follows" in history
    assert "secret" not in page
    assert "worker:1" not in history.replace("Handed over by worker:1", "")


@pytest.mark.parametrize("path", ["", "/text", "/words", "/live", "/segments/0.0"])
async def test_s_w3_another_s_record_is_not_there(panel: Panel, path: str) -> None:
    """It looks like one that there is not, to read and to write."""
    record_id = await a_text(panel, 1)
    boris = await panel.browser(await panel.account("boris"))
    seen = [await boris.get(f"/records/{each}{path}") for each in (record_id, uuid4())]
    assert [answer.status_code for answer in seen] == [HTTPStatus.NOT_FOUND] * 2
    for verb, fields in (("edit", {"title": "x"}), ("segments/0.0", {"text": "x"})):
        answer = await boris.post(f"/records/{record_id}/{verb}", edition="1", **fields)
        assert answer.status_code == HTTPStatus.NOT_FOUND


async def test_what_is_heard_is_the_smallest_there_is(panel: Panel) -> None:
    """Nothing before the decoding, then that, then the listening copy; none of another machine's store."""
    record_id = await a_text(panel, 1)
    browser = await panel.browser(panel.anna)

    async def heard() -> str:
        found = re.search(r'<audio [^>]*src="([^"]*)"', (await browser.get(f"/records/{record_id}")).text)
        return found[1] if found else ""

    path = f"/v1/records/{record_id}/audio"
    assert await heard() == ""
    await change(panel.database, record_id, "audio_path = 'records/x/y/audio.w64'")
    assert await heard() == path
    made = "UPDATE listening_copies SET path = 'x', media = 'audio/mpeg', peaks = '' WHERE record_id = %s"
    await put(panel.database, made, record_id)
    assert await heard() == f"{path}?copy=listening"
    await put(panel.database, "INSERT INTO stores (id) VALUES ('00000000-0000-0000-0000-000000000001')")
    await change(panel.database, record_id, "store_id = '00000000-0000-0000-0000-000000000001'")
    assert await heard() == ""

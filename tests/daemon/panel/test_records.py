"""The list of records, without a browser's engine: what it says, how quickly, and what its forms do."""

import re
from http import HTTPStatus
from time import perf_counter

import httpx
import pytest
from attrs import evolve

from daemon.panel import live
from daemon.panel.rows import kind_of, row_of, state_of
from daemon.panel.static_files import static_files, static_hash, static_path
from daemon.panel.words import Words
from storage.database import Database
from storage.readiness import MOST_AHEAD, Readiness, read_readiness
from storage.record import Milestone, Stop, StopCode
from storage.searching import Piece, pieces_of, read_hits
from tests.daemon.panel.conftest import SAME_SITE, Panel, listening
from tests.making import a_record, put
from tests.waiting import until

_ROW = re.compile(r'<li class="row (\w+)" id="r-([0-9a-f-]{36})"')


@pytest.fixture
async def readiness(panel: Panel) -> Readiness:
    """What a new record is at."""
    record_id = await a_record(panel.database, panel.store, panel.anna)
    found = await read_readiness(panel.database, record_id, panel.anna.id)
    assert isinstance(found, Readiness)
    return found


async def test_a_row_says_what_a_record_is_at(readiness: Readiness) -> None:
    """In the words of the reader's language, from the readiness alone."""
    ru, en = Words("ru"), Words("en")
    waiting = evolve(readiness, queue_position=3)
    assert state_of(waiting, en) == "Waiting, place 3"
    assert state_of(evolve(waiting, queue_position=MOST_AHEAD + 1), ru) == f"Ждёт, дальше места {MOST_AHEAD}"
    assert state_of(evolve(waiting, queue_position=None), ru) == "Принята"
    assert state_of(evolve(waiting, held_seconds=1.0), en) == "Being decoded"
    assert state_of(evolve(waiting, failures=2, wakes_in=9.0), en) == "Resting before another try"
    working = evolve(
        waiting,
        milestone=Milestone.TRANSCRIBE,
        decoded_seconds=14_400.0,
        recognised_seconds=2535.0,
        milestone_seconds=500.0,
        held_seconds=20.0,
    )
    row = row_of(working, en)
    assert (row.kind, row.progress, row.left) == ("working", "42:15 / 4:00:00", "about 39 minutes left")
    assert row.is_live
    assert row.can_stop
    stop = Stop(code=StopCode.SILENT, reason="for the owner", at=readiness.created_at, by="x")
    stopped = row_of(evolve(working, stop=stop, held_seconds=None), ru)
    assert (stopped.kind, stopped.left, stopped.fraction) == ("stopped", "", None)
    assert stopped.reason.startswith("В записи не нашлось речи.")
    assert stopped.can_lift
    done = evolve(working, milestone=Milestone.DONE)
    assert (kind_of(done), state_of(done, ru)) == ("done", "Готова")
    assert row_of(evolve(done, title="", filename=""), en).name == "Without a name"


async def many(database: Database, panel: Panel, number: int) -> None:
    """Put in so many records of anna's, done, stopped, waiting and at work by turns."""
    first = await a_record(database, panel.store, panel.anna)
    await put(
        database,
        "INSERT INTO records (id, owner_id, created_at, filename, title, store_id, source_path, "
        "source_bytes, "
        "source_sha256, fingerprint, milestone, lane, recognised_text, decoded_seconds, recognised_seconds) "
        "SELECT gen_random_uuid(), owner_id, created_at - make_interval(secs => n), 'x.wav', 'Talk ' || n, "
        "store_id, source_path, 1, source_sha256, source_sha256, "
        "CASE WHEN mod(n, 4) = 0 THEN 'transcribe' ELSE 'done' END, "
        "CASE WHEN mod(n, 4) = 0 THEN 'whisper' END, "
        "'words number ' || n, 3600, CASE WHEN mod(n, 4) = 0 THEN 600 ELSE 3600 END "
        "FROM records, generate_series(1, %s) AS n WHERE id = %s",
        number,
        first,
    )
    await put(database, "ANALYZE")


async def test_s_w7_ten_thousand_records_are_listed_at_once(panel: Panel) -> None:
    """Any page of the list, any filter and a search take less than 200 ms, the first one aside."""
    await many(panel.database, panel, 10_000)
    browser = await panel.browser(panel.anna)
    paths = ("/records", "/records?show=working", "/records?show=stopped", "/records?q=number+77")
    took: dict[str, float] = {}
    for path in paths:
        times = []
        for _ in range(5):
            began = perf_counter()
            assert (await browser.get(path)).status_code == HTTPStatus.OK
            times.append(perf_counter() - began)
        took[path] = min(times)
    assert max(took.values()) < 0.2, took


async def test_pages_follow_each_other_to_the_last(panel: Panel) -> None:
    """Each record is on one page, in the order of the list."""
    await many(panel.database, panel, 120)
    browser = await panel.browser(panel.anna)
    path, seen = "/records", list[str]()
    while path:
        page = (await browser.get(path)).text
        seen += [each[1] for each in _ROW.findall(page)]
        match = re.search(r'<a rel="next" href="([^"]+)"', page)
        path = match[1].replace("&amp;", "&") if match else ""
    assert len(seen) == len(set(seen)) == 121
    newest = await put(panel.database, "SELECT id::text FROM records ORDER BY created_at DESC, id DESC")
    assert seen == [each for (each,) in newest]
    assert (await browser.get("/records?cursor=nonsense")).status_code == HTTPStatus.BAD_REQUEST


async def test_hits_have_their_words_marked(panel: Panel) -> None:
    """In any of their forms, in the order of the audio; what must not be there shows nothing."""
    database = panel.database
    record_id = await a_record(database, panel.store, panel.anna)
    texts = [
        "Запись проходит свои РУБЕЖИ.",
        " Ничего такого.",
        " a <b>milestone</b> рубеж",
        " Рубежом назвали & <i>",
    ]
    for number, text in enumerate(texts):
        await put(
            database,
            "INSERT INTO segments (record_id, slice, number, start_seconds, end_seconds, text) "
            "VALUES (%s, 0, %s, %s, %s, %s)",
            record_id,
            number,
            number * 10.0,
            number * 10.0 + 9,
            text,
        )
    hits = await read_hits(database, [record_id], "рубеж -такого")
    assert [hit.start for hit in hits[record_id]] == [0.0, 20.0, 30.0]
    assert [piece.text for piece in hits[record_id][0].pieces if piece.is_found] == ["РУБЕЖИ"]
    assert "".join(piece.text for piece in hits[record_id][2].pieces) == "Рубежом назвали & <i>"
    assert await read_hits(database, [record_id], "-рубеж") == {}
    assert await read_hits(database, [record_id], "и в на") == {}


def test_marks_that_do_not_fit_are_left_out() -> None:
    """The text stands there as it is, come what may."""
    assert pieces_of("a <b> c", "a  \ue000c\ue001") == (Piece("a <b> c", is_found=False),)
    assert pieces_of("Ab", "\ue000a\ue001b") == (Piece("A", is_found=True), Piece("b", is_found=False))


async def test_without_scripts_a_file_is_sent_by_a_form(panel: Panel) -> None:
    """It becomes a record; an empty one says what is wrong, and none is made."""
    browser = await panel.browser(panel.anna)
    files = {"file": ("talk.wav", b"RIFF", "audio/wav")}
    answer = await browser.client.post("/records/send", files=files, headers=SAME_SITE)
    assert answer.status_code == HTTPStatus.SEE_OTHER
    assert re.fullmatch(r"/records/[0-9a-f-]{36}", answer.headers["location"])
    empty = await browser.client.post("/records/send", files={"file": ("x", b"")}, headers=SAME_SITE)
    assert empty.status_code == HTTPStatus.BAD_REQUEST
    assert "No recording was chosen." in empty.text
    panel.doors.stopping = True
    late = await browser.client.post("/records/send", files=files, headers=SAME_SITE)
    assert late.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert "Retry-After" in late.headers
    assert await put(panel.database, "SELECT count(*) FROM records") == [(1,)]


async def test_every_deed_says_what_it_did(panel: Panel) -> None:
    """Stopping, lifting, deleting, having back; to none that it fits, it says that."""
    record_id = str(await a_record(panel.database, panel.store, panel.anna))
    browser = await panel.browser(panel.anna)
    back = "/records?show=done&did=lifted&number=9"

    async def said(do: str, **more: str) -> str:
        answer = await browser.post("/records", do=do, id=record_id, back=back, **more)
        page = (await browser.get(answer.headers["location"])).text
        match = re.search(r'<div class="notice" role="status"><p>([^<]*)</p>', page)
        return match[1] if match else ""

    assert await said("lift") == "None of them was stopped, so there was nothing to lift."
    assert await said("stop") == "1 record stopped."
    assert await said("stop") == "None of them could be stopped: done and stopped ones stay as they are."
    assert await said("lift") == "1 record is at work again."
    assert await said("delete") == "1 record deleted."
    assert await said("undelete") == "1 record is back."
    answer = await browser.post("/records", do="lift", back=back)
    assert answer.headers["location"] == "/records?show=done&did=unchosen"
    assert (await browser.post("/records", do="explode")).status_code == HTTPStatus.NOT_FOUND
    one = await browser.post(f"/records/{record_id}/stop")
    assert one.headers["location"] == f"/records/{record_id}"
    gone = await browser.post(f"/records/{record_id}/delete")
    assert gone.headers["location"] == f"/records?deleted={record_id}"
    assert (await browser.post(f"/records/{record_id}/explode")).status_code == HTTPStatus.NOT_FOUND


async def test_a_stream_says_each_row_anew_when_it_changes(
    panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows at once, then what changed; that there is a newer record; and that the session is over."""
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.2)
    record_id = await a_record(panel.database, panel.store, panel.anna)
    browser = await panel.browser(panel.anna)
    database, store = panel.database, panel.store
    async with listening(browser, f"/records/live?ids={record_id}&newest={record_id}") as heard:
        await until(lambda: "Waiting, place 1" in heard.said)
        await browser.post(f"/records/{record_id}/stop")
        await until(lambda: "stopped on request" in heard.said)
        assert "event: newer" not in heard.said
        await a_record(database, store, panel.anna)
        await until(lambda: "event: newer" in heard.said)
        await browser.post(f"/records/{record_id}/delete")
        await until(lambda: '"html": ""' in heard.said)
        await put(database, "DELETE FROM sessions")
        await until(lambda: heard.over)
    assert heard.said.endswith("event: over\ndata: {}\n\n")
    await until(lambda: panel.doors.app.state.doors.polls.changes.waiting == 0)


async def test_a_look_is_chosen_and_remembered(panel: Panel) -> None:
    """Language and theme, by a press, for a year; what there is not changes nothing."""
    browser = await panel.browser(panel.anna)
    assert '<html lang="en" data-theme="auto">' in (await browser.get("/records")).text
    russian = await browser.get("/records", **{"Accept-Language": "ru-RU"})
    assert '<html lang="ru" data-theme="auto">' in russian.text
    answer = await browser.post("/look", language="ru", theme="dark", back="/account")
    assert answer.headers["location"] == "/account"
    assert '<html lang="ru" data-theme="dark">' in (await browser.get("/records")).text
    await browser.post("/look", language="xx", theme="pink")
    assert '<html lang="ru" data-theme="dark">' in (await browser.get("/records")).text


async def test_what_there_is_not_is_a_page_for_people_and_a_problem_for_programs(panel: Panel) -> None:
    """By what is asked for; a wrong method too."""
    browser = await panel.browser(None)
    page = await browser.get("/nowhere")
    assert page.status_code == HTTPStatus.NOT_FOUND
    assert "<h1>Not found</h1>" in page.text
    assert (await browser.client.get("/nowhere")).headers["content-type"] == "application/problem+json"
    assert (await browser.get("/v1/nowhere")).headers["content-type"] == "application/problem+json"
    assert (await browser.client.put("/records", headers={"Accept": "text/html"})).status_code == 405
    assert (await browser.client.head("/sign-in")).status_code == HTTPStatus.OK


async def test_forms_that_make_no_sense_are_told_so(panel: Panel) -> None:
    """Too long, of another kind, not UTF-8, with a NUL: a page, and no more of it is read."""
    browser = await panel.browser(panel.anna)

    async def sent(content: bytes, kind: str = "application/x-www-form-urlencoded") -> httpx.Response:
        return await browser.client.post(
            "/look", content=content, headers={**SAME_SITE, "Content-Type": kind}
        )

    assert (await sent(b"x" * 300_000)).status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert (await sent(b"{}", "application/json")).status_code == HTTPStatus.BAD_REQUEST
    assert (await sent(b"a=%ff")).status_code == HTTPStatus.BAD_REQUEST
    assert (await sent(b"a=%00")).status_code == HTTPStatus.BAD_REQUEST
    assert (await sent(b"&".join([b"a=1"] * 1001))).status_code == HTTPStatus.BAD_REQUEST


async def test_an_error_of_ours_is_a_page_too(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the log, and the visitor is told where to ask; the service goes on."""

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    browser = await panel.browser(panel.anna)
    monkeypatch.setattr("daemon.panel.records.read_listing", broken)
    answer = await browser.get("/records")
    assert answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "The service owner&#39;s log has the cause." in answer.text
    assert (await browser.get("/account")).status_code == HTTPStatus.OK


async def test_static_files_are_kept_for_good_under_their_hash(panel: Panel) -> None:
    """Packed where that is taken; one of another version is not there."""
    browser = await panel.browser(None)
    for name in static_files():
        answer = await browser.client.get(static_path(name))
        assert answer.status_code == HTTPStatus.OK, name
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"
        plain = await browser.client.get(static_path(name), headers={"Accept-Encoding": "identity"})
        assert plain.content == answer.content == static_files()[name].plain
    for path in (f"/static/{'0' * 16}/panel.css", f"/static/{static_hash()}/..%2fapp.py", "/static/x/y"):
        assert (await browser.client.get(path)).status_code == HTTPStatus.NOT_FOUND
    with pytest.raises(KeyError):
        static_path("nothing.css")

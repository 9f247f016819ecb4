"""Transcripts as the doors give them."""

from collections.abc import Callable
from uuid import UUID

import httpx
import pytest

from daemon.intake.openapi import described
from daemon.intake.transcripts import OPERATIONS
from tests.daemon.intake.conftest import Doors
from tests.making import a_record, change, put

Problem = Callable[[httpx.Response, int, str], str]
WORDS = '[{"start": 0.5, "end": 1, "text": "So", "probability": 0.9}]'
FORMS = {
    "txt": ("text/plain; charset=utf-8", "So it <began>.\n\nThe end\n"),
    "srt": (
        "application/x-subrip; charset=utf-8",
        "1\n00:00:00,500 --> 00:00:03,000\nSo it <began>.\n\n2\n00:00:09,000 --> 00:00:10,000\nThe end\n",
    ),
    "vtt": (
        "text/vtt; charset=utf-8",
        (
            "WEBVTT\n\n00:00:00.500 --> 00:00:03.000\nSo it &lt;began&gt;.\n\n"
            "00:00:09.000 --> 00:00:10.000\nThe end\n"
        ),
    ),
    "tsv": (
        "text/tab-separated-values; charset=utf-8",
        "start\tend\ttext\n500\t3000\tSo it <began>.\n9000\t10000\tThe end\n",
    ),
}


async def a_text(doors: Doors, **changes: str) -> UUID:
    """Return a record with two segments, done."""
    record_id = await a_record(doors.database, doors.store, doors.anna, **changes)
    for row in ((0, 0, 0.5, 3, "So it <began>.", WORDS), (1, 0, 9, 10, "The\tend", "[]")):
        await put(doors.database, "INSERT INTO segments VALUES (%s, %s, %s, %s, %s, %s, %s)", record_id, *row)
    await change(
        doors.database,
        record_id,
        "milestone = 'done', lane = NULL, recognised_text = 'So it <began>. The end', found_language = 'en', "
        "decoded_seconds = 10.5, recognised_seconds = 10.5",
    )
    return record_id


async def test_a_text_comes_in_every_form(doors: Doors) -> None:
    """As a file under the recording's own name, with a tag of its own."""
    record_id = await a_text(doors, filename='dir/Встреча "1"\r\n.m4a')
    etags = set()
    async with doors.client() as client:
        for form, (media, text) in FORMS.items():
            answer = await client.get(f"/v1/records/{record_id}/transcript.{form}")
            assert (answer.status_code, answer.headers["content-type"], answer.text) == (200, media, text)
            name = f"%D0%92%D1%81%D1%82%D1%80%D0%B5%D1%87%D0%B0%20%221%22__.{form}"
            assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''{name}"
            etags.add(answer.headers["etag"])
            known = {"If-None-Match": answer.headers["etag"]}
            again = await client.get(f"/v1/records/{record_id}/transcript.{form}", headers=known)
            assert (again.status_code, again.content) == (304, b"")
        assert len(etags) == len(FORMS)
        answer = await client.get(f"/v1/records/{record_id}/transcript")
        as_file = await client.get(f"/v1/records/{record_id}/transcript.json")
    assert (answer.headers["content-type"], "content-disposition" in answer.headers) == (
        "application/json",
        False,
    )
    assert answer.json() == as_file.json()
    shown = answer.json()
    assert (shown["text"], shown["partial"], shown["language"]) == ("So it <began>.\n\nThe end", False, "en")
    assert shown["segments"][0]["words"] == [{"start": 0.5, "end": 1, "text": "So", "probability": 0.9}]
    schemas = described(OPERATIONS)["components"]["schemas"]
    assert set(shown) == set(schemas["ShownTranscript"]["required"])
    assert set(shown["segments"][0]) == set(schemas["ShownSegment"]["required"])


async def test_a_text_that_is_not_whole_is_given_to_who_wants_it_so(doors: Doors, problem: Problem) -> None:
    """Others are told that it is not ready, and when to ask again; of a stopped one, why."""
    record_id = await a_text(doors)
    await change(
        doors.database, record_id, "milestone = 'transcribe', lane = 'whisper', recognised_text = NULL"
    )
    async with doors.client() as client:
        path = f"/v1/records/{record_id}/transcript"
        for ending in ("", ".srt", ".txt?partial=false"):
            answer = await client.get(path + ending)
            assert "at transcribe" in problem(answer, 409, "not_ready")
            assert int(answer.headers["retry-after"]) >= 1
        assert (await client.get(f"{path}?partial=true")).json()["partial"] is True
        assert (await client.get(f"{path}.txt?partial=true")).text == FORMS["txt"][1]
        flag = "stop_code = 'overdue', stop_reason = 'x', stopped_at = now(), stopped_by = 'x'"
        await change(doors.database, record_id, flag)
        answer = await client.get(path)
        assert "Lift the stop" in problem(answer, 409, "not_ready")
        assert "retry-after" not in answer.headers
        problem(await client.get(f"{path}.docx"), 404, "no_such_form")
        problem(await client.get(f"{path}.txt?partial=yes"), 400, "invalid_query")


@pytest.mark.parametrize("name", ["", "..", "/", ".srt", "\u202egpj.exe", "a" * 1000, "x\ud7ff\U0010ffff"])
async def test_no_name_breaks_the_answer(doors: Doors, name: str) -> None:
    """Whatever a recording is called."""
    record_id = await a_text(doors, filename=name)
    async with doors.client() as client:
        answer = await client.get(f"/v1/records/{record_id}/transcript.txt")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].isascii()
    assert answer.headers["content-disposition"].endswith(".txt")

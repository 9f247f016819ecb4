"""The OpenAI-compatible routes: what is wished for, what is answered, and how a call ends."""

import json
import math
from typing import Any

import httpx
import pytest
import trio

from daemon.intake.compatible.errors import openai_error, speaks_openai
from daemon.intake.compatible.forms import answered
from daemon.intake.compatible.wish import FORMS, read_wish
from daemon.intake.problems import Problem
from storage.errors import SubmissionRefused
from storage.owner import stop
from storage.record import Milestone, Segment, Word
from tests.daemon.intake.conftest import Doors
from tests.daemon.intake.test_pace import a_readiness
from tests.making import change, put
from tests.waiting import until

MODELS = ("whisper-1", "base")
FILE = {"file": ("talk.mp3", b"RIFF of a kind")}
DONE = "milestone = 'done', lane = NULL, recognised_text = 'All of it.', decoded_seconds = 3.2"


def test_a_wish_is_read_from_its_fields() -> None:
    """Those that mean nothing here are passed over."""
    fields = [
        ("model", "base"),
        ("language", "RU"),
        ("prompt", "Rubezh"),
        ("response_format", "verbose_json"),
        ("timestamp_granularities[]", "word"),
        ("temperature", "0.7"),
        ("whatever", "x"),
    ]
    wish = read_wish(fields, "talk.mp3", MODELS)
    assert (wish.form, wish.granularities, wish.streamed) == ("verbose_json", frozenset({"word"}), False)
    assert (wish.options.filename, wish.options.asked_language, wish.options.hotwords) == (
        "talk.mp3",
        "ru",
        "Rubezh",
    )
    plain = read_wish([("model", "whisper-1")], "", MODELS)
    assert (plain.form, plain.granularities, plain.options.filename) == (
        "json",
        frozenset({"segment"}),
        "recording",
    )


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "missing_required_parameter"),
        ({"model": "x" * 10_000}, "model_not_found"),
        ({"model": "base", "response_format": "docx"}, "invalid_value"),
        ({"model": "base", "stream": "perhaps"}, "invalid_value"),
        ({"model": "base", "stream": "true", "response_format": "srt"}, "invalid_value"),
        ({"model": "base", "timestamp_granularities[]": "word"}, "invalid_value"),
        (
            {"model": "base", "response_format": "verbose_json", "timestamp_granularities[]": "letter"},
            "invalid_value",
        ),
        ({"model": "base", "include[]": "logprobs"}, "invalid_value"),
    ],
)
def test_what_cannot_be_given_is_refused(fields: dict[str, str], code: str) -> None:
    """In a sentence, however long the name was."""
    with pytest.raises(Problem) as told:
        read_wish([*fields.items()], "", MODELS)
    assert told.value.code == code
    assert len(told.value.detail) < 300


def test_options_that_no_submission_may_have_are_refused_as_there() -> None:
    """By the same rules."""
    with pytest.raises(SubmissionRefused, match="language"):
        read_wish([("model", "base"), ("language", "?")], "", MODELS)


def test_every_form_holds_the_text() -> None:
    """And what is not known is left out."""
    words = tuple(Word(start=n, end=n + 0.5, text=f" w{n}", probability=0.5) for n in range(2))
    segments = (
        Segment(slice=0, number=0, start=0.0, end=2.0, text="w0 w1", words=words),
        Segment(slice=1, number=0, start=2.0, end=3.2, text="then"),
    )
    readiness = a_readiness(milestone=Milestone.DONE, text="w0 w1 then", decoded_seconds=3.2)

    def form(name: str, granularity: str = "segment") -> Any:
        granularities = [("timestamp_granularities[]", granularity)] if name == "verbose_json" else []
        return answered(
            read_wish([("model", "base"), ("response_format", name), *granularities], "", MODELS),
            readiness,
            segments,
        )

    assert set(FORMS) == {"json", "text", "srt", "verbose_json", "vtt"}
    assert json.loads(form("json")) == {"text": "w0 w1 then", "usage": {"type": "duration", "seconds": 4}}
    assert form("text") == "w0 w1 then\n"
    assert form("srt").startswith("1\n00:00:00,000 --> 00:00:02,000\nw0 w1\n")
    assert form("vtt").startswith("WEBVTT\n\n00:00:00.000")
    whole = json.loads(form("verbose_json"))
    assert [each["text"] for each in whole["segments"]] == ["w0 w1", "then"]
    assert whole["segments"][0]["avg_logprob"] == round(math.log(0.5), 3)
    assert "avg_logprob" not in whole["segments"][1]
    assert "words" not in whole
    whole = json.loads(form("verbose_json", "word"))
    assert [each["word"] for each in whole["words"]] == ["w0", "w1"]
    assert "segments" not in whole


def test_errors_have_openai_s_form_on_its_paths_alone() -> None:
    """With a kind that its clients know."""
    assert [speaks_openai(path) for path in ("/v1/audio/x", "/v1/models/x", "/v1/records")] == [
        True,
        True,
        False,
    ]
    kinds = [openai_error(status, "x", "y.")["error"]["type"] for status in (400, 429, 503)]
    assert kinds == ["invalid_request_error", "rate_limit_exceeded", "server_error"]


async def called(doors: Doors, into: list[httpx.Response], **fields: str) -> None:
    """Ask for a transcription and keep the answer."""
    async with doors.client() as client:
        given = {"model": "whisper-1", **fields}
        into.append(await client.post("/v1/audio/transcriptions", files=FILE, data=given))


async def its_record(doors: Doors) -> Any:
    """Wait for the record of a call."""
    found: list[Any] = []

    async def there() -> bool:
        found[:] = await put(doors.database, "SELECT id FROM records")
        return bool(found)

    await until(there)
    return found[0][0]


async def test_a_call_ends_with_its_record(doors: Doors, nursery: trio.Nursery) -> None:
    """Done with the text, stopped with the reason; the same recording again is the same record."""
    answers: list[httpx.Response] = []
    nursery.start_soon(called, doors, answers)
    record_id = await its_record(doors)
    await until(lambda: doors.app.state.doors.polls.changes.waiting == 1)
    await change(doors.database, record_id, DONE)
    await until(lambda: bool(answers))
    assert (answers[0].status_code, answers[0].json()["text"]) == (200, "All of it.")
    assert answers[0].headers["rubezh-record"] == str(record_id)
    await called(doors, answers, response_format="text")
    assert (answers[1].text, answers[1].headers["rubezh-record"]) == ("All of it.\n", str(record_id))
    assert (await doors.left())[0] == 1
    await change(doors.database, record_id, "milestone = 'converted', lane = 'whisper'")
    await stop(doors.database, record_id, None, "anna")
    await called(doors, answers)
    error = answers[2].json()["error"]
    assert (answers[2].status_code, error["code"], error["type"]) == (
        422,
        "stopped_by_owner",
        "invalid_request_error",
    )
    assert str(record_id) in error["message"]
    assert answers[2].headers["rubezh-record"] == str(record_id)


async def test_a_stream_tells_each_piece_and_then_the_whole(doors: Doors, nursery: trio.Nursery) -> None:
    """The pieces together are the whole; a stop is told in the stream."""
    said: list[str] = []

    async def listen() -> None:
        given = {"model": "base", "stream": "true"}
        path = "/v1/audio/transcriptions"
        async with doors.client() as client, client.stream("POST", path, files=FILE, data=given) as answer:
            said.extend([line async for line in answer.aiter_lines() if line.startswith("data: ")])

    nursery.start_soon(listen)
    record_id = await its_record(doors)
    insert = "INSERT INTO segments VALUES (%s, %s, 0, %s, %s, %s, '[]')"
    await put(doors.database, insert, record_id, 0, 0, 1, "All")
    await change(
        doors.database, record_id, "milestone = 'transcribe', lane = 'whisper', recognised_seconds = 1"
    )
    await put(doors.database, insert, record_id, 1, 1, 2, "of it.")
    await change(doors.database, record_id, DONE)
    await until(lambda: bool(said) and "done" in said[-1])
    *pieces, done = [json.loads(line[6:]) for line in said]
    assert "".join(piece["delta"] for piece in pieces) == done["text"] == "All of it."
    await change(doors.database, record_id, "milestone = 'transcribe', lane = 'whisper'")
    await stop(doors.database, record_id, None, "anna")
    said.clear()
    nursery.start_soon(listen)
    await until(lambda: bool(said))
    assert json.loads(said[-1][6:])["error"]["code"] == "stopped_by_owner"


async def test_a_stop_of_the_service_ends_calls(doors: Doors, nursery: trio.Nursery) -> None:
    """With the record's name, so that the same request goes on with it; nothing new is taken."""
    answers: list[httpx.Response] = []
    nursery.start_soon(called, doors, answers)
    record_id = await its_record(doors)
    await until(lambda: doors.app.state.doors.polls.changes.waiting == 1)
    doors.stopping = True
    doors.app.state.doors.polls.changes.let_go()
    await until(lambda: bool(answers))
    assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (503, "stopping")
    assert (answers[0].headers["retry-after"], answers[0].headers["rubezh-record"]) == ("10", str(record_id))
    async with doors.client() as client:
        answer = await client.post("/v1/audio/translations", files=FILE, data={"model": "whisper-1"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
        answer = await client.post("/v1/audio/transcriptions", content=b"x")
        assert answer.json()["error"]["code"] == "stopping"
        assert (await client.get("/v1/models/none")).json()["error"]["code"] == "model_not_found"


async def test_a_form_is_asked_for(doors: Doors) -> None:
    """A plain body holds no model."""
    async with doors.client() as client:
        answer = await client.post("/v1/audio/transcriptions", content=b"x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_form")
    assert await doors.left() == (0, [])
